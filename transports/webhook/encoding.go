package webhook

import (
	"crypto/sha1" //nolint:gosec // only for who asks for it by name
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"hash"
)

// Algorithm is the hash in an HMAC.
type Algorithm string

// The algorithms. SHA1 is for providers that have nothing better.
const (
	SHA256 Algorithm = "sha256"
	SHA512 Algorithm = "sha512"
	SHA1   Algorithm = "sha1"
)

// Encoding is how bytes are written as text.
type Encoding string

// The encodings. Padding may be missing.
const (
	Text      Encoding = "text"
	Hex       Encoding = "hex"
	Base64    Encoding = "base64"
	Base64URL Encoding = "base64url"
)

// hash is nil for an algorithm that nobody knows.
func (a Algorithm) hash() func() hash.Hash {
	switch a {
	case SHA256:
		return sha256.New
	case SHA512:
		return sha512.New
	case SHA1:
		return sha1.New
	default:
		return nil
	}
}

// bytes returns nil for text that is not written so, and for an encoding that nobody
// knows.
func (e Encoding) bytes(text string) []byte {
	switch e {
	case Text:
		return []byte(text)
	case Hex:
		return fromHex(text)
	case Base64:
		return fromBase64(base64.StdEncoding, text)
	case Base64URL:
		return fromBase64(base64.URLEncoding, text)
	default:
		return nil
	}
}

func (e Encoding) text(raw []byte) string {
	switch e {
	case Base64:
		return base64.StdEncoding.EncodeToString(raw)
	case Base64URL:
		return base64.URLEncoding.EncodeToString(raw)
	default:
		return hex.EncodeToString(raw)
	}
}

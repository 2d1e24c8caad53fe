package as2

import (
	"crypto"
	_ "crypto/sha256" // for crypto.SHA256
	_ "crypto/sha512" // for crypto.SHA384 and crypto.SHA512
	"encoding/base64"
	"strings"
)

// DefaultMIC is the algorithm for those who ask for none.
const DefaultMIC = "sha-256"

// hashOf returns the algorithm of a name, in today's spelling or that of old
// senders. SHA-1 and MD5 prove nothing any more and are unknown here.
func hashOf(name string) (crypto.Hash, bool) {
	switch strings.ReplaceAll(strings.ToLower(name), "-", "") {
	case "sha256":
		return crypto.SHA256, true
	case "sha384":
		return crypto.SHA384, true
	case "sha512":
		return crypto.SHA512, true
	default:
		return 0, false
	}
}

// MIC is the message integrity check of a body, as it stands in an MDN, by the
// algorithm that the sender asked for and under the name that it gave.
//
// It covers the content alone. RFC 4130, section 7.3.1, has it cover the MIME
// header too where the message is signed or encrypted, but for one that is
// neither it "MUST be calculated over the message contents without the MIME or
// any other RFC 2822 headers, since these are sometimes altered or reordered".
func (r *Request) MIC(body []byte) string { return MIC(r.MICAlgorithm, body) }

// MIC is the message integrity check of content by a named algorithm, see
// [Request.MIC]. It is empty for one that is not known.
func MIC(algorithm string, content []byte) string {
	hash, ok := hashOf(algorithm)
	if !ok {
		return ""
	}
	sum := hash.New()
	sum.Write(content)
	return base64.StdEncoding.EncodeToString(sum.Sum(nil)) + ", " + algorithm
}

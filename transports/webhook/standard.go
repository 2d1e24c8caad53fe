package webhook

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The headers of Standard Webhooks, and the same by Svix.
const (
	standardID        = "Webhook-Id"
	standardTimestamp = "Webhook-Timestamp"
	standardSignature = "Webhook-Signature"

	svixID        = "Svix-Id"
	svixTimestamp = "Svix-Timestamp"
	svixSignature = "Svix-Signature"
)

// StandardWebhooks is the preset of all who follow the Standard Webhooks
// specification, Svix among them. A secret is whsec_ and 24 to 64 bytes in base64, or
// the sender's public key, whpk_ and 32 bytes in base64 (ed25519). For
// [Preset.Sign] it may also be a private key, whsk_; [NewHandler] refuses that,
// which is not the receiver's to have.
//
// Signed: the id, the time, and every byte of the body.
//
// The message: its id is webhook-id, the same in each retry; its type, time and key
// are type, timestamp and data.id of a body that has them, as the specification
// proposes. There is no version.
//
// Stable: all of the body.
func StandardWebhooks(secrets ...string) Preset {
	s := standard{}
	err := checkSecrets(secrets, s.add)
	return Preset{
		scheme: &s,
		traits: traits{
			name: "standard", signature: standardSignature, types: []string{"application/json"},
			headers: []string{"webhook-id", "webhook-timestamp", "svix-id", "svix-timestamp"},
			maxBody: 1 << 20, tolerance: 5 * time.Minute,
		},
		err: err,
	}
}

type standard struct {
	keys    []key
	public  []ed25519.PublicKey
	private []ed25519.PrivateKey // only for signing
}

// add takes a secret in. The kind of a key is in its name, so that nobody can make
// us take a public key for a shared one.
func (s *standard) add(secret string) error {
	kind, encoded, _ := strings.Cut(secret, "_")
	raw := fromBase64(base64.StdEncoding, encoded)
	switch {
	case kind != "whsec" && kind != "whpk" && kind != "whsk":
		return errors.New("must begin with whsec_, or with whpk_ for a public key")
	case raw == nil:
		return errors.New("must be base64 behind its prefix")
	case kind == "whsec" && len(raw) >= 24 && len(raw) <= 64:
		s.keys = append(s.keys, key{raw, sha256.New})
	case kind == "whsec":
		return errors.New("has " + strconv.Itoa(len(raw)) + " bytes behind its prefix; it must have 24 to 64")
	case kind == "whpk" && len(raw) == ed25519.PublicKeySize:
		s.public = append(s.public, raw)
	case kind == "whsk" && (len(raw) == ed25519.SeedSize || len(raw) == ed25519.PrivateKeySize):
		s.private = append(s.private, ed25519.NewKeyFromSeed(raw[:ed25519.SeedSize]))
	default:
		return errors.New("is no ed25519 key: it has " + strconv.Itoa(len(raw)) + " bytes behind its prefix")
	}
	return nil
}

// family is the names of the three headers.
type family struct{ id, timestamp, signature string }

// familyOf returns the one family of headers that counts: they are never mixed.
func familyOf(h http.Header) family {
	if len(h[standardSignature]) == 0 && len(h[svixSignature]) > 0 {
		return family{svixID, svixTimestamp, svixSignature}
	}
	return family{standardID, standardTimestamp, standardSignature}
}

func (s *standard) verify(h http.Header, body []byte) (time.Time, error) {
	names := familyOf(h)
	lines, err := oneLineEach(h, names.id, names.timestamp, names.signature)
	if err != nil {
		return time.Time{}, err
	}
	id, at := lines[0], lines[1]
	if strings.Contains(id, ".") { // it could move the boundary between the parts
		return time.Time{}, errMalformed
	}
	signed, err := unix(at, time.Second)
	if err != nil {
		return time.Time{}, err
	}
	signatures, err := split(lines[2], " ")
	if err != nil {
		return time.Time{}, err
	}
	return signed, s.holds(signatures, []byte(id+"."+at+"."), body)
}

// holds reports whether one of the signatures is right. Versions that nobody knows
// yet are skipped.
func (s *standard) holds(signatures []string, prefix, body []byte) error {
	var shared, asymmetric [][]byte
	for _, signature := range signatures {
		version, encoded, _ := strings.Cut(signature, ",")
		switch version {
		case "v1":
			shared = append(shared, fromBase64(base64.StdEncoding, encoded))
		case "v1a":
			asymmetric = append(asymmetric, fromBase64(base64.StdEncoding, encoded))
		}
	}
	if len(shared)+len(asymmetric) == 0 {
		return errMalformed
	}
	if len(shared) > 0 && anyOf(s.keys, shared, prefix, body) == nil {
		return nil
	}
	message := slices.Concat(prefix, body)
	for _, public := range s.public {
		for _, signature := range asymmetric {
			if ed25519.Verify(public, message, signature) {
				return nil
			}
		}
	}
	return errWrong
}

// addSigning takes secrets in that sign, each of them.
func (s *standard) addSigning(secrets []string) error {
	return checkSecrets(secrets, func(secret string) error {
		if strings.HasPrefix(secret, "whpk_") {
			return errors.New("is a public key, which signs nothing: give the private one, whsk_")
		}
		return s.add(secret)
	})
}

// sign takes the private key if there is one, else the first secret.
func (s *standard) sign(h http.Header, body []byte, at time.Time) error {
	if len(s.private)+len(s.keys) == 0 {
		return errors.New("a public key signs nothing: give the private one, whsk_")
	}
	one := standard{private: s.private[:min(len(s.private), 1)]}
	if len(one.private) == 0 {
		one.keys = s.keys[:1]
	}
	return one.signAll(h, body, at)
}

// signAll makes a signature with each secret.
func (s *standard) signAll(h http.Header, body []byte, at time.Time) error {
	id, err := oneLine(h, standardID)
	if err != nil {
		return errors.New("set its webhook-id first, once")
	}
	t := strconv.FormatInt(at.Unix(), 10)
	prefix := []byte(id + "." + t + ".")
	var signatures []string
	for _, private := range s.private {
		signatures = append(signatures, "v1a,"+base64.StdEncoding.EncodeToString(ed25519.Sign(private, slices.Concat(prefix, body))))
	}
	for _, k := range s.keys {
		signatures = append(signatures, "v1,"+base64.StdEncoding.EncodeToString(k.sum(prefix, body)))
	}
	h.Set(standardTimestamp, t)
	h.Set(standardSignature, strings.Join(signatures, " "))
	return nil
}

func (s *standard) read(h http.Header, body []byte) event {
	found := event{id: h.Get(familyOf(h).id)}
	var e struct {
		Type      text `json:"type"`
		Timestamp text `json:"timestamp"`
		Data      struct {
			ID text `json:"id"`
		} `json:"data"`
	}
	decode(body, &e)
	found.kind, found.key = string(e.Type), string(e.Data.ID)
	if at, err := time.Parse(time.RFC3339, string(e.Timestamp)); err == nil {
		found.occurred = at
	}
	return found
}

func (*standard) stable(payload []byte) []byte { return whole(payload) }

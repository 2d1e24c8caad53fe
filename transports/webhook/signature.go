package webhook

import (
	"crypto/hmac"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// What a sender can make us do is bounded: by the size of a header that is looked at,
// by the signatures in it, and by the secrets that each is held against.
const (
	maxHeaderBytes = 4 << 10
	maxSignatures  = 32
	maxSecrets     = 8
)

// The refusals of verify.
var (
	errUnsigned  = errors.New("signature is missing")
	errRepeated  = errors.New("a signed header came more than once")
	errMalformed = errors.New("signature is malformed")
	errWrong     = errors.New("signature is wrong")
)

// oneLine returns the value of a header that must be there, once. Two lines are two
// opinions about what is signed: whoever else reads the request may take the other.
func oneLine(h http.Header, name string) (string, error) {
	lines := h[name] // canonical
	switch {
	case len(lines) > 1:
		return "", errRepeated
	case len(lines) == 0 || lines[0] == "":
		return "", errUnsigned
	case len(lines[0]) > maxHeaderBytes:
		return "", errMalformed
	}
	return lines[0], nil
}

func oneLineEach(h http.Header, names ...string) ([]string, error) {
	lines := make([]string, len(names))
	for i, name := range names {
		var err error
		if lines[i], err = oneLine(h, name); err != nil {
			return nil, err
		}
	}
	return lines, nil
}

// split cuts text at every separator.
func split(text, separator string) ([]string, error) {
	if separator == "" {
		return []string{text}, nil
	}
	parts := strings.SplitN(text, separator, maxSignatures+1)
	if len(parts) > maxSignatures {
		return nil, errMalformed
	}
	return parts, nil
}

// key signs with one secret.
type key struct {
	secret []byte
	hash   func() hash.Hash
}

func (k key) sum(parts ...[]byte) []byte {
	mac := hmac.New(k.hash, k.secret)
	for _, part := range parts {
		mac.Write(part)
	}
	return mac.Sum(nil)
}

// anyOf holds every signature against every secret, in constant time for each pair.
func anyOf(keys []key, signatures [][]byte, signed ...[]byte) error {
	if len(signatures) == 0 {
		return errMalformed
	}
	for _, k := range keys {
		want := k.sum(signed...)
		for _, got := range signatures {
			if hmac.Equal(want, got) {
				return nil
			}
		}
	}
	return errWrong
}

// unix reads a time in whole units since 1970, in the one way to write it: what is
// signed is its text, so that a digit that moved out of it or into it is another time.
func unix(text string, unit time.Duration) (time.Time, error) {
	digits := 10 // of seconds, until the year 2286
	if unit == time.Millisecond {
		digits = 13
	}
	if text == "" || len(text) > digits || text[0] == '0' {
		return time.Time{}, errMalformed
	}
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return time.Time{}, errMalformed
		}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}, errMalformed
	}
	if unit == time.Millisecond {
		return time.UnixMilli(n), nil
	}
	return time.Unix(n, 0), nil
}

// checkSecrets names what is wrong with secrets by their place, never by their text.
func checkSecrets(secrets []string, check func(secret string) error) error {
	var errs []error
	switch n := len(secrets); {
	case n == 0:
		errs = append(errs, errors.New("no secret is given"))
	case n > maxSecrets:
		errs = append(errs, fmt.Errorf("%d secrets are given; at most %d may be valid at once", n, maxSecrets))
	}
	for i, secret := range secrets {
		err := checkText(secret)
		if err == nil {
			err = check(secret)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("secret %d %w", i+1, err))
		}
	}
	return errors.Join(errs...)
}

// checkText finds what a secret never has and a file or a variable often adds.
func checkText(secret string) error {
	if secret == "" {
		return errors.New("is empty")
	}
	if strings.TrimFunc(secret, unicode.IsSpace) != secret {
		return errors.New("begins or ends with white space: see how it was read")
	}
	return nil
}

// fromHex returns nil for what is not hex.
func fromHex(text string) []byte {
	raw, err := hex.DecodeString(text)
	if err != nil {
		return nil
	}
	return raw
}

// fromBase64 returns nil for what is not base64. The padding may be missing; nothing
// else may be otherwise than an encoder writes it.
func fromBase64(encoding *base64.Encoding, text string) []byte {
	raw, err := encoding.WithPadding(base64.NoPadding).Strict().DecodeString(strings.TrimRight(text, "="))
	if err != nil || strings.ContainsAny(text, "\r\n") {
		return nil
	}
	return raw
}

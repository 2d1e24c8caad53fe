package dedup

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgtype"
)

// MaxIDBytes is the longest message id that is accepted.
const MaxIDBytes = 255

// ErrBadID is returned for an id that cannot identify anything: empty, only
// white space, over [MaxIDBytes] bytes, with a NUL byte, or not UTF-8.
var ErrBadID = errors.New("unusable message id")

// ID is a message id as it is stored: a UUID.
type ID [16]byte

// CheckID returns an error wrapping [ErrBadID] unless id can be claimed.
// Nothing is trimmed: " a" and "a" are two ids.
func CheckID(id string) error {
	switch {
	case id == "":
		return fmt.Errorf("%w: it is empty", ErrBadID)
	case len(id) > MaxIDBytes:
		return fmt.Errorf("%w: it has %d bytes, at most %d are allowed (it begins %.32q)", ErrBadID, len(id), MaxIDBytes, id)
	case strings.IndexByte(id, 0) >= 0:
		return fmt.Errorf("%w: it has a NUL byte: %q", ErrBadID, id)
	case !utf8.ValidString(id):
		return fmt.Errorf("%w: it is not UTF-8: %q", ErrBadID, id)
	case strings.TrimSpace(id) == "":
		return fmt.Errorf("%w: it is only white space: %q", ErrBadID, id)
	}
	return nil
}

// MessageID returns the form in which id is stored. A UUID in canonical lower
// case, other than version 8, is stored as it is. Any other id becomes a
// version 8 UUID of 122 bits of its SHA-256, which no id stored as it is can
// equal. The SQL function semel.message_id computes the same.
func MessageID(id string) ID {
	if stored, ok := parseUUID(id); ok && stored[6]>>4 != 8 {
		return stored
	}
	return HashID([]byte(id))
}

// HashID returns the version 8 UUID of parts: the first 16 bytes of their
// SHA-256, each part with its length before it.
func HashID(parts ...[]byte) ID {
	h := sha256.New()
	for _, p := range parts {
		writePart(h, p)
	}
	var sum [sha256.Size]byte
	h.Sum(sum[:0])
	id := ID(sum[:16])
	id[6] = id[6]&0x0f | 0x80
	id[8] = id[8]&0x3f | 0x80
	return id
}

// ConsumerID returns the number under which a consumer's rows are stored. It
// is the same in every process, so nothing has to be looked up; [Register]
// finds out if two names ever have the same.
func ConsumerID(name string) int32 {
	h := sha256.New()
	writePart(h, []byte(name))
	var sum [sha256.Size]byte
	return int32(binary.BigEndian.Uint32(h.Sum(sum[:0]))) //nolint:gosec // the column is int: the top bit is the sign
}

// Fingerprint returns the number by which two payloads under one id are told
// apart. It covers the type and the payload, not the headers.
func Fingerprint(messageType string, payload []byte) int64 {
	const lengths = 2 * 4
	var room [1024]byte // on the stack: most messages need no memory to be hashed
	if lengths+len(messageType)+len(payload) > len(room) {
		h := sha256.New()
		writePart(h, []byte(messageType))
		writePart(h, payload)
		return int64(binary.BigEndian.Uint64(h.Sum(nil))) //nolint:gosec // the column is bigint: the top bit is the sign
	}
	parts := append(appendLength(room[:0], len(messageType)), messageType...)
	parts = append(appendLength(parts, len(payload)), payload...)
	sum := sha256.Sum256(parts)
	return int64(binary.BigEndian.Uint64(sum[:])) //nolint:gosec // as above
}

func writePart(h hash.Hash, part []byte) {
	h.Write(appendLength(nil, len(part)))
	h.Write(part)
}

func appendLength(b []byte, n int) []byte {
	return binary.BigEndian.AppendUint32(b, uint32(n)) //nolint:gosec // a part of 4 GiB does not fit a message
}

// String returns the canonical text form.
func (id ID) String() string {
	var text [36]byte
	hex.Encode(text[0:8], id[0:4])
	hex.Encode(text[9:13], id[4:6])
	hex.Encode(text[14:18], id[6:8])
	hex.Encode(text[19:23], id[8:10])
	hex.Encode(text[24:36], id[10:16])
	text[8], text[13], text[18], text[23] = '-', '-', '-', '-'
	return string(text[:])
}

// UUIDValue implements [pgtype.UUIDValuer].
func (id ID) UUIDValue() (pgtype.UUID, error) {
	return pgtype.UUID{Bytes: id, Valid: true}, nil
}

// ScanUUID implements [pgtype.UUIDScanner].
func (id *ID) ScanUUID(v pgtype.UUID) error {
	if !v.Valid {
		return errors.New("scan message id: it is NULL")
	}
	*id = v.Bytes
	return nil
}

// parseUUID accepts the canonical lower-case form only, so that two texts
// never share one stored id.
func parseUUID(text string) (id ID, ok bool) {
	if len(text) != 36 || text[8] != '-' || text[13] != '-' || text[18] != '-' || text[23] != '-' {
		return ID{}, false
	}
	i := 0
	for n := range id {
		switch i {
		case 8, 13, 18, 23: // a dash anywhere else is no digit
			i++
		}
		hi, lo := hexDigit(text[i]), hexDigit(text[i+1])
		if hi > 15 || lo > 15 {
			return ID{}, false
		}
		id[n] = hi<<4 | lo
		i += 2
	}
	return id, true
}

func hexDigit(c byte) byte {
	switch {
	case c >= '0' && c <= '9':
		return c - '0'
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10
	}
	return 16
}

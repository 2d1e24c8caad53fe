package msgrow

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"unicode/utf8"

	"github.com/semel-go/semel/handler"
)

// Payload is a payload as it stands in a row.
type Payload struct {
	Bytes   []byte // nil is NULL: a tombstone, or deleted
	KeyID   string // of the codec
	Encoded bool
}

const (
	// noTag stands for a header without an AMQP type.
	noTag = '-'

	// keyTag stands for the header that names the key of the payload. No header
	// from outside gets it.
	keyTag = '*'

	// maxKeyID bounds the id of a key, in bytes.
	maxKeyID = 255
)

// UsableTag reports whether the tag of a header from outside can be stored.
func UsableTag(tag byte) bool { return tag > ' ' && tag <= '~' && tag != noTag && tag != keyTag }

// Encode returns a payload as it is to be stored. Without a codec that is as it
// is, and a tombstone stays one.
func Encode(ctx context.Context, codec handler.Codec, payload []byte) (Payload, error) {
	if codec == nil || payload == nil {
		return Payload{Bytes: payload}, nil
	}
	p := Payload{Encoded: true}
	err := guarded(func() (err error) {
		p.Bytes, p.KeyID, err = codec.Encode(ctx, payload)
		return err
	})
	switch {
	case err != nil:
	case len(p.KeyID) > maxKeyID || !utf8.ValidString(p.KeyID):
		err = fmt.Errorf("its key id %.64q is not text of at most %d bytes", p.KeyID, maxKeyID)
	case len(p.Bytes) == 0 && len(payload) > 0:
		err = fmt.Errorf("it made nothing of %d bytes", len(payload))
	}
	if err != nil {
		return Payload{}, fmt.Errorf("encode payload: %w: %w", handler.ErrCodec, err)
	}
	if p.Bytes == nil {
		p.Bytes = []byte{} // NULL is a tombstone
	}
	return p, nil
}

// Decode returns the payload as it was.
func (p Payload) Decode(ctx context.Context, codec handler.Codec) ([]byte, error) {
	if !p.Encoded || p.Bytes == nil {
		return p.Bytes, nil
	}
	err := errors.New("there is none here: configure the one that the payload was stored with")
	var payload []byte
	if codec != nil {
		err = guarded(func() (err error) {
			payload, err = codec.Decode(ctx, p.Bytes, p.KeyID)
			return err
		})
	}
	if err != nil {
		return nil, fmt.Errorf("decode payload stored under key id %q: %w: %w", p.KeyID, handler.ErrCodec, err)
	}
	if payload == nil {
		payload = []byte{} // it was no tombstone
	}
	return payload, nil
}

// guarded keeps a panic of a codec from taking the process with it.
func guarded(f func() error) (err error) {
	defer func() {
		switch value := recover().(type) {
		case nil:
		case runtime.Error:
			err = fmt.Errorf("it panicked: %w", value)
		default:
			err = fmt.Errorf("it panicked with a %T", value) // whose text may hold the payload
		}
	}()
	return f()
}

// IsAway reports whether err says that a key cannot be had now, and nothing
// about the payload.
func IsAway(err error) bool {
	return handler.IsUnavailable(err) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// Mark adds what says how the payload is encoded to the columns of headers.
// Tags is one character for each header, or empty if none has any.
func (p Payload) Mark(names []string, values [][]byte, tags string) ([]string, [][]byte, string) {
	if !p.Encoded {
		return names, values, tags
	}
	if tags == "" {
		tags = strings.Repeat(string(noTag), len(names))
	}
	return append(names, handler.HeaderKeyID), append(values, []byte(p.KeyID)), tags + string(keyTag)
}

// Unmark undoes [Payload.Mark] with the columns of a row, and returns what it
// said of the payload. The values are NULL where they were deleted.
func Unmark(names []string, values [][]byte, tags string) (p Payload, _ []string, _ [][]byte, _ string) {
	last := len(names) - 1
	if last < 0 || len(tags) != len(names) || tags[last] != keyTag || names[last] != handler.HeaderKeyID {
		return Payload{}, names, values, tags
	}
	if p.Encoded = true; last < len(values) {
		p.KeyID, values = string(values[last]), values[:last]
	}
	if last == 0 {
		return p, nil, nil, ""
	}
	return p, names[:last], values, tags[:last]
}

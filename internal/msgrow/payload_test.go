package msgrow_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/internal/codectest"
	"github.com/semel-go/semel/internal/msgrow"
)

func TestEncode(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name    string
		payload []byte
	}{
		{name: "Tombstone", payload: nil},
		{name: "Empty", payload: []byte{}},
		{name: "Text", payload: []byte("4111111111111111")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			ring := codectest.New("k1")
			stored, err := msgrow.Encode(t.Context(), ring, tt.payload)
			require.NoError(t, err)
			require.Equal(t, tt.payload != nil, stored.Encoded)
			require.Equal(t, tt.payload == nil, stored.Bytes == nil, "NULL is a tombstone and nothing else")
			if tt.payload != nil {
				require.Equal(t, "k1", stored.KeyID)
				require.NotContains(t, string(stored.Bytes), "4111111111111111")
			}

			back, err := stored.Decode(t.Context(), ring)
			require.NoError(t, err)
			require.Equal(t, tt.payload, back)

			plain, err := msgrow.Encode(t.Context(), nil, tt.payload)
			require.NoError(t, err)
			require.Equal(t, msgrow.Payload{Bytes: tt.payload}, plain)
			back, err = plain.Decode(t.Context(), ring)
			require.NoError(t, err, "what was stored before there was a codec")
			require.Equal(t, tt.payload, back)
		})
	}
}

// codec is made of two functions.
type codec struct {
	encode func(payload []byte) ([]byte, string, error)
	decode func(stored []byte) ([]byte, error)
}

func (c codec) Encode(_ context.Context, payload []byte) ([]byte, string, error) {
	return c.encode(payload)
}

func (c codec) Decode(_ context.Context, stored []byte, _ string) ([]byte, error) {
	return c.decode(stored)
}

func TestEncode_Refused(t *testing.T) {
	t.Parallel()

	gone := errors.New("key service away")
	tests := []struct {
		name   string
		encode func([]byte) ([]byte, string, error)
		says   string
	}{
		{name: "Error", encode: func([]byte) ([]byte, string, error) { return []byte("x"), "k", gone }, says: "key service away"},
		{name: "Nothing", encode: func([]byte) ([]byte, string, error) { return nil, "k", nil }, says: "it made nothing of 6 bytes"},
		{name: "LongKeyID", encode: func([]byte) ([]byte, string, error) { return []byte("x"), strings.Repeat("k", 256), nil }, says: "at most 255 bytes"},
		{name: "KeyIDIsNoText", encode: func([]byte) ([]byte, string, error) { return []byte("x"), "\xff", nil }, says: "not text"},
		{name: "Panic", encode: func(payload []byte) ([]byte, string, error) { panic("with " + string(payload)) }, says: "it panicked with a string"},
		{name: "RuntimePanic", encode: func(payload []byte) ([]byte, string, error) { return payload[:100], "", nil }, says: "out of range"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			stored, err := msgrow.Encode(t.Context(), codec{encode: tt.encode}, []byte("secret"))

			require.ErrorIs(t, err, handler.ErrCodec)
			require.ErrorContains(t, err, tt.says)
			require.NotContains(t, err.Error(), "secret")
			require.Zero(t, stored, "nothing of it may be stored")
		})
	}
}

func TestPayload_Decode_Refused(t *testing.T) {
	t.Parallel()

	stored := msgrow.Payload{Bytes: []byte("x"), KeyID: "k7", Encoded: true}
	_, err := stored.Decode(t.Context(), nil)
	require.ErrorIs(t, err, handler.ErrCodec)
	require.ErrorContains(t, err, `"k7"`)
	require.ErrorContains(t, err, "there is none here")
	require.False(t, msgrow.IsAway(err))

	away := handler.Unavailable(errors.New("key service away"))
	_, err = stored.Decode(t.Context(), codec{decode: func([]byte) ([]byte, error) { return nil, away }})
	require.ErrorIs(t, err, handler.ErrCodec)
	require.ErrorIs(t, err, away)
	require.True(t, msgrow.IsAway(err))

	_, err = stored.Decode(t.Context(), codec{decode: func([]byte) ([]byte, error) { panic("x") }})
	require.ErrorIs(t, err, handler.ErrCodec)

	stored.Bytes = nil // deleted, or somebody's own doing
	payload, err := stored.Decode(t.Context(), nil)
	require.NoError(t, err)
	require.Nil(t, payload)
}

// FuzzUnmark: a row may have been written by hand, and what was marked comes back.
func FuzzUnmark(f *testing.F) {
	f.Add("a", []byte("1"), "S", "k1", true)
	f.Add(handler.HeaderKeyID, []byte("k1"), "-", "k2", true)
	f.Add(handler.HeaderKeyID, []byte("k1"), "*", "", false)
	f.Add("", []byte(nil), "", "", false)
	f.Fuzz(func(t *testing.T, name string, value []byte, tags, keyID string, whole bool) {
		var values [][]byte
		if whole {
			values = append(values, value)
		}
		msgrow.Unmark([]string{name}, values, tags)
		msgrow.Unmark(nil, values, tags)

		stored := msgrow.Payload{Bytes: []byte("x"), KeyID: keyID, Encoded: true}
		if len(tags) != 1 {
			tags = "" // no header has one
		}
		got, names, values, gotTags := msgrow.Unmark(stored.Mark([]string{name}, [][]byte{value}, tags))
		require.Equal(t, msgrow.Payload{KeyID: keyID, Encoded: true}, got)
		require.Equal(t, []string{name}, names)
		require.Equal(t, [][]byte{value}, values)
		if tags == "" {
			tags = "-"
		}
		require.Equal(t, tags, gotTags)
	})
}

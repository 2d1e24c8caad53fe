package dlq_test

import (
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/internal/codectest"
)

const card = "4111111111111111"

// ours is the header that a row with an encoded payload has, as somebody outside
// might send it. Only the tag tells the two apart.
func ours(keyID string, tag byte) handler.Header {
	return handler.Header{Name: handler.HeaderKeyID, Value: []byte(keyID), Tag: tag}
}

func TestStore_WithCodec(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name    string
		payload []byte
		headers handler.Headers
	}{
		{name: "NoHeaders", payload: []byte(card)},
		{name: "Headers", payload: []byte(card), headers: handler.Headers{{Name: "a", Value: []byte("1")}, {Name: "b"}}},
		{name: "Tagged", payload: []byte(card), headers: handler.Headers{{Name: "a", Value: []byte("1"), Tag: 'S'}, {Name: "b"}}},
		{name: "NameIsNoText", payload: []byte(card), headers: handler.Headers{{Name: "a\x00"}, {Name: `b\x00`}}},
		{name: "HeaderOfOurName", payload: []byte(card), headers: handler.Headers{ours("k9", 0), ours("k9", 'S')}},
		{name: "Empty", payload: []byte{}, headers: handler.Headers{{Name: "a"}}},
		{name: "Tombstone", payload: nil, headers: handler.Headers{{Name: "a"}}},
		{name: "TombstoneWithHeaderOfOurName", payload: nil, headers: handler.Headers{ours("k9", 0)}},
	}
	b := setup(t)
	ring := codectest.New("k1")
	plain := b.store
	b.store = plain.WithCodec(ring)
	for i, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			msg := &handler.Message{ID: "1", Payload: tt.payload, Headers: tt.headers}
			id := b.add(t, &dlq.Letter{MessageID: [16]byte{byte(i)}, Reason: dlq.Permanent, Message: msg})

			l := b.load(t, id)
			require.Equal(t, msg, l.Message)
			require.False(t, l.Encoded)

			l, err := plain.Load(t.Context(), b.pool, id)
			require.NoError(t, err)
			require.Equal(t, tt.headers, l.Message.Headers, "the header is ours, not the message's")
			require.Equal(t, tt.payload != nil, l.Encoded)
			if tt.payload == nil {
				require.Empty(t, l.KeyID)
				require.Nil(t, l.Message.Payload)
				return
			}
			require.Equal(t, "k1", l.KeyID)
			require.NotEqual(t, tt.payload, l.Message.Payload)
			b.inTx(t, func(tx pgx.Tx) {
				_, _, err := plain.Add(t.Context(), tx, l)
				require.ErrorContains(t, err, "load that with a codec", "it would be stored as if it were the message's own")
			})
		})
	}
	require.Empty(t, codectest.TablesWith(t, b.pool, b.schema, card))
}

// A header from outside makes no payload look encoded, whatever it says.
func TestStore_HeaderOfOurName(t *testing.T) {
	t.Parallel()

	b := setup(t)
	for i, store := range []dlq.Store{b.store, b.store.WithCodec(codectest.New("k1"))} {
		msg := &handler.Message{ID: "1", Payload: []byte(card), Headers: handler.Headers{{Name: "a"}, ours("k1", '*')}}
		b.inTx(t, func(tx pgx.Tx) {
			id, _, err := store.Add(t.Context(), tx, &dlq.Letter{MessageID: [16]byte{byte(i)}, Reason: dlq.Permanent, Message: msg})
			require.NoError(t, err)
			l, err := store.Load(t.Context(), tx, id)
			require.NoError(t, err)
			require.Equal(t, handler.Headers{{Name: "a"}, ours("k1", 0)}, l.Message.Headers)
			require.Equal(t, "header_tags dropped", l.Altered, "no transport has such a tag")
			require.Equal(t, []byte(card), l.Message.Payload)
			require.False(t, l.Encoded)
		})
	}
}

// Letters of an old key, and those of before there was one, are read beside new
// ones.
func TestStore_WithCodec_Rotation(t *testing.T) {
	t.Parallel()

	b := setup(t)
	ring := codectest.New("k1")
	add := func(n byte) int64 {
		return b.add(t, &dlq.Letter{MessageID: [16]byte{n}, Reason: dlq.Permanent, Message: &handler.Message{Payload: []byte(card)}})
	}
	ids := []int64{add(1)}
	b.store = b.store.WithCodec(ring)
	ids = append(ids, add(2))
	ring.Add("k2")
	ids = append(ids, add(3))

	for i, key := range []string{"", "k1", "k2"} {
		l := b.load(t, ids[i])
		require.Equal(t, []byte(card), l.Message.Payload)
		require.Equal(t, key, l.KeyID)
	}
	ring.Remove("k1")
	_, err := b.store.Load(t.Context(), b.pool, ids[1])
	require.ErrorIs(t, err, handler.ErrCodec)
	require.ErrorContains(t, err, `decode payload stored under key id "k1"`)
	require.Equal(t, []byte(card), b.load(t, ids[2]).Message.Payload)

	require.Equal(t, ids[0], add(1), "dead again, under the new key: the row changes as one")
	require.Equal(t, "k2", b.load(t, ids[0]).KeyID)
}

// What cannot be encoded is not stored in plain.
func TestStore_WithCodec_Away(t *testing.T) {
	t.Parallel()

	b := setup(t)
	ring := codectest.New("k1")
	gone := handler.Unavailable(errors.New("key service away"))
	ring.Fail(gone)
	b.store = b.store.WithCodec(ring)
	b.inTx(t, func(tx pgx.Tx) {
		_, _, err := b.store.Add(t.Context(), tx, &dlq.Letter{Reason: dlq.Permanent, Message: &handler.Message{ID: "1", Payload: []byte(card)}})
		require.ErrorIs(t, err, handler.ErrCodec)
		require.ErrorIs(t, err, gone)
		require.NotContains(t, err.Error(), card)
		_, _, err = b.store.Add(t.Context(), tx, &dlq.Letter{Reason: dlq.Permanent, Message: &handler.Message{ID: "2"}})
		require.NoError(t, err, "a tombstone needs no key, and the transaction is whole")
	})
	require.Empty(t, codectest.TablesWith(t, b.pool, b.schema, card))
}

// A redacted letter has nothing to decode, whoever has which keys.
func TestStore_WithCodec_Redacted(t *testing.T) {
	t.Parallel()

	b := setup(t)
	plain, ring := b.store, codectest.New("k1")
	b.store = plain.WithCodec(ring)
	msg := &handler.Message{ID: "1", Payload: []byte(card), Headers: handler.Headers{{Name: "a", Value: []byte("1")}}}
	id := b.add(t, &dlq.Letter{Reason: dlq.Permanent, Message: msg})
	b.exec(t, `UPDATE semel.dead_letters SET state = 'resolved', resolved_at = now() - interval '3 days'`)
	purged, err := b.store.Purge(t.Context(), b.pool, dlq.PurgeConfig{RedactAfter: 24 * time.Hour})
	require.NoError(t, err)
	require.EqualValues(t, 1, purged.Redacted)
	ring.Fail(errors.New("must not be asked"))
	asked := ring.Asked()

	for _, store := range []dlq.Store{plain, b.store} {
		l, err := store.Load(t.Context(), b.pool, id)
		require.NoError(t, err)
		require.NotZero(t, l.RedactedAt)
		require.Nil(t, l.Message.Payload)
		require.Equal(t, handler.Headers{{Name: "a"}}, l.Message.Headers)
		require.False(t, l.Encoded)
		require.Empty(t, l.KeyID)
	}
	require.Equal(t, asked, ring.Asked())
}

package inbox

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/outbox"
)

// taking is a transaction that takes everything: what is left is the outbox's own
// check of an event.
type taking struct{ pgx.Tx }

func (taking) Exec(context.Context, string, ...any) (pgconn.CommandTag, error) {
	return pgconn.CommandTag{}, nil
}

// Whatever a message holds, it makes an event that the outbox takes: one that it
// refused would keep the letter from being written for ever.
func FuzzLetterEvent(f *testing.F) {
	f.Add("evt_1", "order.paid", []byte("k"), "corr", "cause", "/shop", "application/json", "x", []byte("y"), int64(1_700_000_000))
	f.Add("", " ", []byte(nil), "", "", "", "", "", []byte(nil), int64(0))
	f.Add("\xff", "\x00", []byte("\xff\x00"), "\xff", "\x00", "\t", "\xff", "\x00", []byte{0}, int64(1)<<60)
	f.Fuzz(func(t *testing.T, id, typ string, key []byte, correlation, causation, source, content, header string, payload []byte, at int64) {
		letter := &dlq.Letter{
			MessageID: [16]byte{1}, Reason: dlq.BadID, Errors: []string{header},
			Message: &handler.Message{
				ID: id, Type: typ, Key: key, CorrelationID: correlation, CausationID: causation, Source: source, ContentType: content,
				OccurredAt: time.Unix(at, 0), Payload: payload, Headers: handler.Headers{{Name: header, Value: payload}},
				Origin: handler.Origin{Topic: source, Time: time.Unix(-at, 0)},
			},
		}
		before := *letter.Message

		e := letterEvent("dead", letter, nil)

		require.NoError(t, outbox.Write(t.Context(), taking{}, e))
		require.Equal(t, payload, e.Payload)
		require.Equal(t, before, *letter.Message, "the letter stays as it is")
		kept, given := e.Headers.First(dlq.HeaderOriginalKey)
		require.True(t, e.AggregateID == string(key) || given && (string(kept) == string(key) || len(key) > len(kept)))
	})
}

package main_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/internal/pgtest"
)

// deadLetters fills the schema with one letter of each kind that is shown in
// its own way, at fixed times.
func deadLetters(t *testing.T, db *pgtest.DB) {
	t.Helper()
	const shipping = 855548666
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	binary := make([]byte, 600)
	for i := range binary {
		binary[i] = byte(i)
	}
	letters := []dlq.Letter{
		{ConsumerID: shipping, Reason: dlq.Exhausted, Attempts: 3, Errors: []string{"charge card: timeout", "timeout"}, Message: &handler.Message{
			ID: "evt_1", Type: "order.paid", Key: []byte("order-1"), Version: 7, CorrelationID: "c-1", CausationID: "c-0", Source: "shop",
			ContentType: "application/json", OccurredAt: at, Payload: []byte("{\"amount\": 10, \"name\": \"José\"}\n"),
			Headers: handler.Headers{{Name: "message-id", Value: []byte("evt_1")}, {Name: "retry", Value: []byte("1"), Tag: 'I'}, {Name: "none"}},
			Origin:  handler.Origin{Transport: "kafka", Topic: "payments", Partition: 2, Offset: 41, Position: "payments/2/41", Time: at},
		}},
		{ConsumerID: shipping, Reason: dlq.BadID, Errors: []string{"unusable message id"}, Message: &handler.Message{
			ID: "\xff\x00", Type: "bad\x1b[31mtype", Payload: binary,
			Headers: handler.Headers{{Name: "\x1b]0;title\a", Value: []byte("\x9b2J\xff")}},
			Origin:  handler.Origin{Transport: "rabbitmq", Topic: "payments", Exchange: "orders", RoutingKey: "order.paid"},
		}},
		{ConsumerID: 7, Reason: dlq.Permanent, Attempts: 1, Errors: []string{"two\nlines \x1b[2J"}, Message: &handler.Message{ID: "evt_3", Type: "order.deleted"}},
		{ConsumerID: 7, Reason: dlq.Permanent, Message: &handler.Message{ID: "evt_4", Payload: []byte{}}},
		{ConsumerID: 7, Reason: dlq.Permanent, Message: &handler.Message{ID: "evt_5", Payload: []byte("right\u202eleft, C1 \u009b")}},
	}
	require.NoError(t, pgx.BeginFunc(t.Context(), db.Pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), `INSERT INTO consumers (id, name) VALUES ($1, 'shipping')`, shipping); err != nil {
			return err
		}
		for i := range letters {
			l := &letters[i]
			l.MessageID, l.FirstFailedAt, l.LastFailedAt = [16]byte{byte(i + 1)}, at, at.Add(time.Minute)
			if _, _, err := dlq.NewStore(db.Schema).Add(t.Context(), tx, l); err != nil {
				return err
			}
		}
		_, err := tx.Exec(t.Context(), `UPDATE dead_letters SET created_at = $1`, at)
		return err
	}))
	_, err := db.Pool.Exec(t.Context(), `UPDATE dead_letters SET state = 'discarded', owner = 'ann', resolved_at = created_at WHERE id = 4`)
	require.NoError(t, err)
}

func TestDLQ(t *testing.T) {
	t.Parallel()

	db := pgtest.New(t)
	require.Equal(t, "no dead letters\n", works(t, db, "dlq", "list"))
	require.Equal(t, "[]\n", works(t, db, "dlq", "list", "-json"))
	deadLetters(t, db)

	tests := []struct {
		golden string
		args   []string
	}{
		{golden: "list.txt", args: []string{"list"}},
		{golden: "list_all.txt", args: []string{"list", "-state", "all"}},
		{golden: "list_page.txt", args: []string{"list", "-limit", "2"}},
		{golden: "list_consumer.txt", args: []string{"list", "-consumer", "shipping", "-reason", "exhausted", "-type", "order.paid"}},
		{golden: "list.json", args: []string{"list", "-json", "-before", "3"}},
		{golden: "show_text.txt", args: []string{"show", "1"}},
		{golden: "show_binary.txt", args: []string{"show", "2"}},
		{golden: "show_tombstone.txt", args: []string{"show", "3"}},
		{golden: "show_empty.txt", args: []string{"show", "4"}},
		{golden: "show_control.txt", args: []string{"show", "5"}},
		{golden: "show_text.json", args: []string{"show", "1", "-json"}},
		{golden: "show_binary.json", args: []string{"show", "-json", "2"}},
	}
	for _, tt := range tests {
		t.Run(tt.golden, func(t *testing.T) {
			got := works(t, db, append([]string{"dlq"}, tt.args...)...)

			requireGolden(t, tt.golden, got)
			for _, r := range got {
				require.False(t, r != '\n' && r < ' ' || r >= 0x7f && r < 0xa0 || r == '\u202e', "%U reaches the terminal", r)
			}
		})
	}

	t.Run("JSONIsJSON", func(t *testing.T) {
		var letter map[string]any
		require.NoError(t, json.Unmarshal([]byte(works(t, db, "dlq", "show", "5", "-json")), &letter))
		require.Equal(t, "right\u202eleft, C1 \u009b", letter["payload"])
	})

	t.Run("UnknownConsumer", func(t *testing.T) {
		r := semel(t, db.URL, "dlq", "list", "-consumer", "billing", "-schema", db.Schema)
		require.Equal(t, 1, r.code)
		require.Equal(t, "semel: no consumer \"billing\": there are shipping\n", r.stderr)
	})

	t.Run("UnknownLetter", func(t *testing.T) {
		r := semel(t, db.URL, "dlq", "show", "99", "-schema", db.Schema)
		require.Equal(t, 1, r.code)
		require.Equal(t, "semel: load dead letter 99: no such dead letter\n", r.stderr)
	})
}

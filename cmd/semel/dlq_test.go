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
		{ConsumerID: 7, Reason: dlq.Permanent, Attempts: 1, Errors: []string{"no such order"}, Message: &handler.Message{
			ID: "evt_6", Type: "order.paid", Headers: handler.Headers{{Name: "card"}},
		}},
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
	_, err := db.Pool.Exec(t.Context(), `UPDATE dead_letters SET state = 'discarded', owner = 'ann', decided_by = 'bob', resolved_at = created_at WHERE id IN (4, 6);
		UPDATE dead_letters SET redacted_at = created_at + interval '30 days', header_values = NULL WHERE id = 6`)
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
		{golden: "list_owner.txt", args: []string{"list", "-state", "all", "-owner", "ann"}},
		{golden: "list_unowned.txt", args: []string{"list", "-unowned", "-consumer", "shipping"}},
		{golden: "list.json", args: []string{"list", "-json", "-before", "3"}},
		{golden: "show_text.txt", args: []string{"show", "1"}},
		{golden: "show_binary.txt", args: []string{"show", "2"}},
		{golden: "show_tombstone.txt", args: []string{"show", "3"}},
		{golden: "show_empty.txt", args: []string{"show", "4"}},
		{golden: "show_redacted.txt", args: []string{"show", "6"}},
		{golden: "show_redacted.json", args: []string{"show", "6", "-json"}},
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

func TestDLQ_Assign(t *testing.T) {
	t.Parallel()

	db := pgtest.New(t)
	deadLetters(t, db)
	run := func(args ...string) result {
		return semel(t, db.URL, append(append([]string{"dlq", "assign"}, args...), "-schema", db.Schema)...)
	}
	owner := func(id int64) string {
		l, err := dlq.NewStore(db.Schema).Load(t.Context(), db.Pool, id)
		require.NoError(t, err)
		return l.Owner
	}

	// Without -yes it only says what.
	r := run("1", "3", "-to", "ann")
	require.Equal(t, 1, r.code)
	require.Equal(t, "semel: nothing was done: add -yes to do it\n", r.stderr)
	requireGolden(t, "assign.txt", r.stdout)
	r = run("1", "-to", "ann", "-json")
	require.Equal(t, 1, r.code)
	var shown []struct {
		ID    int64
		State string
	}
	require.NoError(t, json.Unmarshal([]byte(r.stdout), &shown))
	require.Len(t, shown, 1)
	require.Equal(t, "open", shown[0].State)
	require.Empty(t, owner(1))

	// An id of none: nothing is done.
	r = run("1", "99", "-to", "ann", "-yes")
	require.Equal(t, result{"", "semel: load dead letter 99: no such dead letter\n", 1}, r)
	require.Empty(t, owner(1))

	// One of them is discarded already.
	r = run("1", "4", "1", "-to", "bob", "-yes")
	require.Equal(t, 1, r.code)
	require.Equal(t, "semel: 1 of 2 dead letters were not changed\n", r.stderr)
	requireGolden(t, "assign_yes.txt", r.stdout)
	require.Equal(t, []string{"bob", "ann"}, []string{owner(1), owner(4)})

	require.JSONEq(t, `[{"id": 1, "changed": true, "state": "open"}]`, works(t, db, "dlq", "assign", "1", "-to", "", "-yes", "-json"))
	require.Empty(t, owner(1))
	require.Contains(t, works(t, db, "dlq", "assign", "1", "-to", "", "-yes"), "1 of 1 assigned to nobody\n")
}

func TestDLQ_Purge(t *testing.T) {
	t.Parallel()

	db := pgtest.New(t)
	deadLetters(t, db)
	_, err := db.Pool.Exec(t.Context(), `UPDATE dead_letters SET last_failed_at = clock_timestamp() - interval '100 days';
		UPDATE dead_letters SET state = 'resolved', redacted_at = NULL, payload = '4111', resolved_at = clock_timestamp() - make_interval(days => id::int * 20) WHERE id > 1;
		INSERT INTO consumers (id, name) VALUES (7, 'billing')`)
	require.NoError(t, err)
	what := func() (text string) {
		require.NoError(t, db.Pool.QueryRow(t.Context(), `SELECT string_agg(id || CASE WHEN redacted_at IS NULL THEN '' ELSE ' redacted' END, ', ' ORDER BY id) FROM dead_letters`).Scan(&text))
		return text
	}
	require.Equal(t, "1, 2, 3, 4, 5, 6", what())
	const will = "deletes dead letters that were resolved or discarded more than 90d ago\n" +
		"deletes payload and header values of dead letters that were resolved or discarded more than 50d ago\n"

	r := semel(t, db.URL, "dlq", "purge", "-older", "90d", "-redact-after", "50d", "-schema", db.Schema)
	require.Equal(t, result{will, "semel: nothing was done: add -yes to do it\n", 1}, r)
	require.Equal(t, "1, 2, 3, 4, 5, 6", what())

	r = semel(t, db.URL, "dlq", "purge", "-older", "90d", "-consumer", "nobody", "-yes", "-schema", db.Schema)
	require.Equal(t, result{"", "semel: no consumer \"nobody\": there are billing, shipping\n", 1}, r)
	require.Equal(t, "deletes dead letters of consumer \"shipping\" that were resolved or discarded more than 30d ago\n1 deleted\n0 redacted\n",
		works(t, db, "dlq", "purge", "-older", "30d", "-consumer", "shipping", "-yes"))
	require.Equal(t, "1, 3, 4, 5, 6", what())

	require.Equal(t, will+"2 deleted\n2 redacted\n", works(t, db, "dlq", "purge", "-older", "90d", "-redact-after", "50d", "-yes"))
	require.Equal(t, "1, 3 redacted, 4 redacted", what())

	require.Equal(t, "deletes payload and header values of dead letters that were resolved or discarded, or failed last and are OPEN STILL, more than 70d ago\n0 deleted\n1 redacted\n",
		works(t, db, "dlq", "purge", "-redact-after", "70d", "-open", "-yes"))
	require.Equal(t, "1 redacted, 3 redacted, 4 redacted", what())
	require.JSONEq(t, `{"deleted": 2, "redacted": 0}`, works(t, db, "dlq", "purge", "-older", "70d", "-open", "-yes", "-json", "-batch", "1"))
	require.Equal(t, "3 redacted", what())
}

package main_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/internal/pgtest"
	"github.com/semel-go/semel/outbox"
)

// eventID is the id of the n-th event of a test.
func eventID(n int) string { return fmt.Sprintf("0193c000-0000-7000-8000-%012d", n) }

// events fills the outbox with one event of each state and kind that is shown
// in its own way, at fixed times but for one.
func events(t *testing.T, db *pgtest.DB) {
	t.Helper()
	binary := make([]byte, 40)
	for i := range binary {
		binary[i] = byte(i)
	}
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	written := []outbox.Event{
		{AggregateType: "order", AggregateID: "1", Type: "OrderPlaced", Payload: []byte("{\"name\": \"José\"}\n")},
		{
			AggregateType: "order", AggregateID: "2", Type: "OrderPaid", Version: 7, Payload: binary, ContentType: "application/cbor", OccurredAt: at,
			CorrelationID: "c-1", CausationID: "c-0", Source: "shop",
			Headers: handler.Headers{{Name: "retry", Value: []byte("1"), Tag: 'I'}, {Name: "none"}, {Name: "\x1b]0;title\a", Value: []byte("\x9b2J")}},
		},
		{AggregateType: "order", AggregateID: "3", Type: "OrderPaid", Payload: []byte{}},
		{AggregateType: "order", AggregateID: "4", Type: "OrderPaid"},
		{AggregateType: "invoice", AggregateID: "5", Type: "InvoiceSent"},
		{AggregateType: "bad\x1b[31m", AggregateID: "right\u202eleft", Type: "C1 \u009b"},
	}
	for i := range written {
		written[i].ID = eventID(i + 1)
	}
	require.NoError(t, pgx.BeginFunc(t.Context(), db.Pool, func(tx pgx.Tx) error {
		return outbox.NewWriter(db.Schema).Write(t.Context(), tx, written...)
	}))
	for _, sql := range []string{
		`UPDATE outbox SET created_at = '2026-03-01T12:00:00Z'`,
		`UPDATE outbox SET created_at = clock_timestamp() - interval '40 days 1 hour' WHERE aggregateid IN ('1', '2')`,
		`UPDATE outbox SET next_attempt_at = '2026-03-01T13:00:00Z', first_failed_at = '2026-03-01T12:30:00Z', attempts = 2, lease_attempts = 2, last_error = 'broker: no' WHERE aggregateid = '2'`,
		`UPDATE outbox SET quarantined_at = '2026-03-01T14:00:00Z', first_failed_at = '2026-03-01T12:30:00Z', attempts = 3, last_error = E'two\nlines \x1b[2J' WHERE aggregateid = '3'`,
		`UPDATE outbox SET published_at = '2026-03-01T12:00:01Z' WHERE aggregateid = '4'`,
		`UPDATE outbox SET discarded_at = '2026-03-01T15:00:00Z', quarantined_at = '2026-03-01T14:00:00Z' WHERE aggregateid = '5'`,
		`UPDATE outbox SET discarded_at = '2026-03-01T15:00:00Z' WHERE id::text LIKE '%6'`,
		`INSERT INTO relays (id, name, alive_until, started_at) VALUES
			('0193c000-0000-7000-8000-000000000101', 'shop-1/4711', 'infinity', '2026-03-01T12:00:00Z'),
			('0193c000-0000-7000-8000-000000000102', 'shop-2/4711', 'infinity', '2026-03-01T12:05:00Z'),
			('0193c000-0000-7000-8000-000000000103', 'dead/1', '2026-03-01T12:05:00Z', '2026-03-01T12:00:00Z')`,
		`UPDATE relay_leases SET owner = '0193c000-0000-7000-8000-000000000101', expires_at = 'infinity' WHERE lo < 128`,
		`UPDATE relay_leases SET owner = '0193c000-0000-7000-8000-000000000102', expires_at = 'infinity' WHERE lo >= 136`,
		`ANALYZE outbox`,
	} {
		_, err := db.Pool.Exec(t.Context(), sql)
		require.NoError(t, err)
	}
}

// varying is what differs from one run to the next.
var varying = []struct {
	what *regexp.Regexp
	by   string
}{
	{regexp.MustCompile(`\d+ kB on disk`), "SIZE on disk"},
	{regexp.MustCompile(`"bytes": \d+`), `"bytes": SIZE`},
	{regexp.MustCompile(`"oldest_seconds": \d+\.?\d*`), `"oldest_seconds": AGE`},
}

// aTime is one as it is printed, for people or in JSON.
var aTime = regexp.MustCompile(`20\d\d-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?Z`)

func fixed(text string) string {
	for _, v := range varying {
		text = v.what.ReplaceAllString(text, v.by)
	}
	return aTime.ReplaceAllStringFunc(text, func(at string) string {
		if strings.HasPrefix(at, "2026-03-01") {
			return at
		}
		return "YYYY-MM-DD HH:MM:SSZ"
	})
}

func TestOutbox(t *testing.T) {
	t.Parallel()

	db := pgtest.New(t)
	require.Equal(t, "no events\n", works(t, db, "outbox", "list"))
	require.Equal(t, "[]\n", works(t, db, "outbox", "list", "-json"))
	requireGolden(t, "outbox_status_empty.txt", fixed(works(t, db, "outbox", "status")))
	events(t, db)

	tests := []struct {
		golden string
		args   []string
	}{
		{golden: "outbox_status.txt", args: []string{"status"}},
		{golden: "outbox_status.json", args: []string{"status", "-json"}},
		{golden: "outbox_list.txt", args: []string{"list"}},
		{golden: "outbox_list_page.txt", args: []string{"list", "-limit", "2"}},
		{golden: "outbox_list_quarantined.txt", args: []string{"list", "-quarantined"}},
		{golden: "outbox_list_older.txt", args: []string{"list", "-older", "39d", "-type", "order", "-state", "pending"}},
		{golden: "outbox_list_aggregate.txt", args: []string{"list", "-type", "order", "-id", "4"}},
		{golden: "outbox_list.json", args: []string{"list", "-json", "-state", "waiting"}},
		{golden: "outbox_show_text.txt", args: []string{"show", eventID(1)}},
		{golden: "outbox_show_binary.txt", args: []string{"show", eventID(2)}},
		{golden: "outbox_show_binary.json", args: []string{"show", eventID(2), "-json"}},
		{golden: "outbox_show_quarantined.txt", args: []string{"show", eventID(3)}},
		{golden: "outbox_show_published.txt", args: []string{"show", eventID(4)}},
		{golden: "outbox_show_control.txt", args: []string{"show", eventID(6)}},
	}
	for _, tt := range tests {
		t.Run(tt.golden, func(t *testing.T) {
			got := works(t, db, append([]string{"outbox"}, tt.args...)...)

			requireGolden(t, tt.golden, fixed(got))
			for _, r := range got {
				require.False(t, r != '\n' && r < ' ' || r >= 0x7f && r < 0xa0 || r == '\u202e', "%U reaches the terminal", r)
			}
		})
	}

	t.Run("JSONIsJSON", func(t *testing.T) {
		var event map[string]any
		require.NoError(t, json.Unmarshal([]byte(works(t, db, "outbox", "show", eventID(6), "-json")), &event))
		require.Equal(t, []any{"right\u202eleft", "C1 \u009b", nil}, []any{event["aggregate_id"], event["type"], event["payload"]})
	})

	t.Run("UnknownEvent", func(t *testing.T) {
		r := semel(t, db.URL, "outbox", "show", eventID(99), "-schema", db.Schema)
		require.Equal(t, 1, r.code)
		require.Equal(t, "semel: load event "+eventID(99)+": no such event\n", r.stderr)
	})
}

// state is where an event stands.
func state(t *testing.T, db *pgtest.DB, n int) string {
	t.Helper()
	r, err := outbox.NewStore(db.Schema).Load(t.Context(), db.Pool, eventID(n))
	require.NoError(t, err)
	return string(r.State)
}

func TestOutbox_Decide(t *testing.T) {
	t.Parallel()

	db := pgtest.New(t)
	events(t, db)
	run := func(args ...string) result {
		return semel(t, db.URL, append(append([]string{"outbox"}, args...), "-schema", db.Schema)...)
	}

	// Without -yes it only says what.
	r := run("retry", "-quarantined")
	require.Equal(t, 1, r.code)
	require.Equal(t, "semel: nothing was done: add -yes to do it\n", r.stderr)
	requireGolden(t, "outbox_retry.txt", fixed(r.stdout))
	r = run("discard", eventID(1), eventID(3), "-json")
	require.Equal(t, 1, r.code)
	require.Equal(t, "semel: nothing was done: add -yes to do it\n", r.stderr)
	var shown []struct{ ID, State string }
	require.NoError(t, json.Unmarshal([]byte(r.stdout), &shown))
	require.Equal(t, []struct{ ID, State string }{{eventID(1), "pending"}, {eventID(3), "quarantined"}}, shown)
	require.Equal(t, []string{"pending", "quarantined"}, []string{state(t, db, 1), state(t, db, 3)})

	// One id that is none, or nobody's: nothing is done.
	r = run("discard", eventID(1), eventID(99), "-yes")
	require.Equal(t, 1, r.code)
	require.Equal(t, "semel: load event "+eventID(99)+": no such event\n", r.stderr)
	require.Equal(t, "pending", state(t, db, 1))

	requireGolden(t, "outbox_retry_yes.txt", fixed(works(t, db, "outbox", "retry", "-quarantined", "-yes")))
	require.Equal(t, "waiting", state(t, db, 3))
	require.Equal(t, "no events\n", works(t, db, "outbox", "retry", "-quarantined", "-yes"))
	require.JSONEq(t, `[{"id": "`+eventID(2)+`", "changed": true, "state": "waiting"}]`, works(t, db, "outbox", "retry", eventID(2), "-yes", "-json"))

	// A relay was faster with one of them.
	r = run("discard", eventID(3), eventID(4), "-yes")
	require.Equal(t, 1, r.code)
	require.Equal(t, "semel: 1 of 2 events were not changed\n", r.stderr)
	requireGolden(t, "outbox_discard_yes.txt", fixed(r.stdout))
	require.Equal(t, []string{"discarded", "published"}, []string{state(t, db, 3), state(t, db, 4)})
}

func TestPurges(t *testing.T) {
	t.Parallel()

	db := pgtest.New(t)
	events(t, db)
	_, err := db.Pool.Exec(t.Context(), `UPDATE outbox SET published_at = clock_timestamp() - interval '20 days' WHERE published_at IS NOT NULL;
		UPDATE outbox SET discarded_at = clock_timestamp() - interval '10 days' WHERE discarded_at IS NOT NULL;
		INSERT INTO consumers (id, name) VALUES (consumer_id('shipping'), 'shipping'), (consumer_id('billing'), 'billing');
		INSERT INTO processed_messages (consumer_id, message_id, outcome, processed_at)
		SELECT consumer_id(c), message_id(n::text), 1, clock_timestamp() - make_interval(days => n) FROM generate_series(1, 20) AS n, unnest('{shipping,billing}'::text[]) AS c`, pgx.QueryExecModeSimpleProtocol)
	require.NoError(t, err)

	r := semel(t, db.URL, "outbox", "purge", "-older", "14d", "-schema", db.Schema)
	require.Equal(t, result{"deletes events that were published or discarded more than 14d ago\n", "semel: nothing was done: add -yes to do it\n", 1}, r)
	require.Equal(t, "published", state(t, db, 4))
	r = semel(t, db.URL, "outbox", "purge", "-older", "14d", "-archive", "", "-yes", "-schema", db.Schema) // "$ARCHIVE", and it is not set
	require.Equal(t, 2, r.code)
	require.Contains(t, r.stderr, "it names no folder")
	require.Equal(t, "published", state(t, db, 4))
	require.Equal(t, "deletes events that were published or discarded more than 14d ago\n1 deleted\n", works(t, db, "outbox", "purge", "-older", "14d", "-yes"))
	require.JSONEq(t, `{"deleted": 2}`, works(t, db, "outbox", "purge", "-older", "36h", "-yes", "-json"))
	require.Equal(t, []string{"pending", "waiting", "quarantined"}, []string{state(t, db, 1), state(t, db, 2), state(t, db, 3)})

	r = semel(t, db.URL, "inbox", "purge", "-older", "14d", "-consumer", "nobody", "-yes", "-schema", db.Schema)
	require.Equal(t, result{"", "semel: no consumer \"nobody\": there are billing, shipping\n", 1}, r)
	require.Equal(t, "deletes the records of messages that consumer \"shipping\" handled more than 14d ago\n7 deleted\n",
		works(t, db, "inbox", "purge", "-older", "14d", "-consumer", "shipping", "-yes"))
	require.JSONEq(t, `{"deleted": 15}`, works(t, db, "inbox", "purge", "-older", "10d", "-yes", "-json", "-batch", "1"))
}

func TestCheck(t *testing.T) {
	t.Parallel()

	db := pgtest.New(t)
	require.Equal(t, "ok   pending age 0s, limit 5m0s\nok   quarantined 0, limit 0\nok   dead 0, limit 0\nok   unowned 0, limit 0\n",
		works(t, db, "check", "-max-pending-age", "5m", "-max-quarantined", "0", "-max-dead", "0", "-max-unowned", "0"))
	events(t, db)
	deadLetters(t, db)
	_, err := db.Pool.Exec(t.Context(), `UPDATE dead_letters SET owner = 'ann' WHERE id = 1`)
	require.NoError(t, err)

	require.Equal(t, "ok   pending age 40d, limit 41d\nok   quarantined 1, limit 1\nok   dead 4, limit 4\n",
		works(t, db, "check", "-max-pending-age", "41d", "-max-quarantined", "1", "-max-dead", "4"))
	require.Equal(t, "ok   dead 4, limit 9\n", works(t, db, "check", "-max-dead", "9"), "only what is asked")
	for _, tt := range []struct {
		args []string
		want string
	}{
		{args: []string{"-max-pending-age", "5m", "-max-quarantined", "1"}, want: "OVER pending age 40d, limit 5m0s\nok   quarantined 1, limit 1\n"},
		{args: []string{"-max-quarantined", "0"}, want: "OVER quarantined 1, limit 0\n"},
		{args: []string{"-max-dead", "3"}, want: "OVER dead 4, limit 3\n"},
		{args: []string{"-max-dead", "4", "-max-unowned", "2"}, want: "ok   dead 4, limit 4\nOVER unowned 3, limit 2\n"},
		{args: []string{"-max-unowned", "0"}, want: "OVER unowned 3, limit 0\n"},
	} {
		r := semel(t, db.URL, append(append([]string{"check"}, tt.args...), "-schema", db.Schema)...)
		require.Equal(t, result{tt.want, "", 2}, r)
	}

	require.Equal(t, "ok   unowned 3, limit 3\n", works(t, db, "check", "-max-unowned", "3"))

	_, err = db.Pool.Exec(t.Context(), `DROP TABLE dead_letters CASCADE`)
	require.NoError(t, err)
	r := semel(t, db.URL, "check", "-max-dead", "3", "-schema", db.Schema)
	require.Equal(t, 1, r.code)
	require.Empty(t, r.stdout)
	require.Contains(t, r.stderr, "count dead letters")
}

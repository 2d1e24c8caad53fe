package inbox_test

import (
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
	"github.com/semel-go/semel/schema"
)

// Somebody has changed rows by hand. What can be handled is; what cannot is left
// alone for a while, says why, and keeps nothing else from being handled; nothing
// is lost and nobody looks at it all the time.
func TestWork_DamagedRows(t *testing.T) {
	t.Parallel()

	const handled, left, never = "handled", "left alone", "never due"
	tests := []struct {
		name   string
		damage string // of the row
		want   string
		says   string // what a person reads who lists the inbox before and, if it is left alone, after
	}{
		{name: "attempts", damage: `attempts = -5`, want: handled, says: "attempts is -5"},
		{name: "payload", damage: `payload = NULL`, want: handled}, // a tombstone
		{name: "values", damage: `header_names = ARRAY['a', 'b'], header_values = ARRAY['v'::bytea]`, want: handled, says: "it has 2 names and 1 values of headers"},
		{name: "no-values", damage: `header_names = ARRAY['a'], header_values = NULL`, want: handled, says: "it has 1 names and 0 values of headers"},
		{name: "nameless", damage: `header_names = ARRAY['a', NULL], header_values = ARRAY['v'::bytea, 'w']`, want: handled, says: "a header has no name"},
		{name: "no-list", damage: `header_names = ARRAY[['a'], ['b']], header_values = ARRAY['v'::bytea, 'w']`, want: handled, says: "its headers are no lists"},
		{name: "no-letter", damage: `dead_letter_id = 999`, want: left, says: "there is no dead letter 999"},
		{name: "no-type", damage: `message_type = NULL`, want: handled},
		{name: "errors", damage: `errors = ARRAY['x', NULL]`, want: handled},
		{name: "always", damage: `ready_at = '-infinity'`, want: handled, says: "ready_at is -infinity"},
		{name: "never", damage: `ready_at = 'infinity'`, want: never, says: "ready_at is infinity"},
		{name: "failed-never", damage: `attempts = 1, first_failed_at = 'infinity'`, want: handled},
		{name: "failed-always", damage: `attempts = 1, first_failed_at = '-infinity'`, want: handled},
		{name: "stored-never", damage: `stored_at = 'infinity'`, want: handled},
		{name: "stored-always", damage: `stored_at = '-infinity'`, want: handled},
		{name: "letterless", damage: `parked_at = clock_timestamp(), ready_at = NULL`, want: never, says: "it is parked without a dead letter"},
	}
	b := setup(t)
	log := &lines{}
	process := func() *inbox.Inbox {
		return b.inboxOn(t, b.NewPool(t, 5), "shipping", effect, inbox.Config{Ordering: inbox.Strict, Logger: slog.New(slog.NewTextHandler(log, nil))})
	}
	in := process()
	put := func(id string) {
		outcome, err := in.Store(t.Context(), &handler.Message{ID: id, Type: "order.paid", Key: []byte(id), Payload: []byte("1")})
		require.NoError(t, err)
		require.Equal(t, handler.Stored, outcome)
	}
	for _, tt := range tests {
		put("before-" + tt.name)
		put(tt.name)
		b.exec(t, `UPDATE inbox_messages SET `+tt.damage+` WHERE message_id = message_id($1)`, tt.name)
	}
	put("last")
	store := inbox.NewStore(b.Schema)
	said := func(id string) string {
		w, err := store.Load(t.Context(), b.Pool, "shipping", id)
		require.NoError(t, err)
		records, err := store.List(t.Context(), b.Pool, inbox.Filter{Key: []byte(id)})
		require.NoError(t, err)
		require.Len(t, records, 1)
		require.Subset(t, w.Damage, records[0].Damage)
		return strings.Join(records[0].Damage, "; ")
	}
	stays := 0
	for _, tt := range tests {
		require.Equal(t, tt.says, said(tt.name), tt.name)
		if tt.want != handled {
			stays++
		}
	}
	_, err := store.Status(t.Context(), b.Pool)
	require.NoError(t, err)

	works(t, in)
	works(t, process())
	require.Eventually(t, func() bool { return b.inboxRows(t) == stays }, deadline, tick, "one row keeps others from being handled")
	require.Equal(t, 1, b.effects(t, "last"))
	for _, tt := range tests {
		require.Equal(t, 1, b.effects(t, "before-"+tt.name), tt.name)
		if tt.want == handled {
			require.Equal(t, 1, b.effects(t, tt.name), tt.name)
			continue
		}
		require.Zero(t, b.effects(t, tt.name), tt.name)
		require.Equal(t, tt.says, said(tt.name), tt.name)
		if tt.want == left {
			require.Eventually(t, func() bool {
				return b.count(t, `SELECT count(*) FROM inbox_messages WHERE message_id = message_id($1)
					AND ready_at > clock_timestamp() + interval '5 minutes' AND lease_owner IS NULL AND cardinality(errors) > 0`, tt.name) == 1
			}, deadline, tick, "it is not looked at all the time: %s", tt.name)
		}
	}
	require.Equal(t, len(tests)+1+len(tests)-stays, b.count(t, `SELECT count(*) FROM effects`))
	require.Zero(t, log.count("looking into the inbox went wrong"))

	// What is mended is handled.
	b.exec(t, `UPDATE inbox_messages SET header_names = ARRAY['a', 'b'], header_values = ARRAY['v'::bytea, 'w'], dead_letter_id = NULL, parked_at = NULL`)
	for _, tt := range tests {
		if tt.want != handled {
			b.exec(t, `UPDATE inbox_messages SET ready_at = coalesce(ready_at, 'infinity') WHERE message_id = message_id($1)`, tt.name)
			results, err := store.RunNow(t.Context(), b.Pool, "shipping", tt.name)
			require.NoError(t, err)
			require.True(t, results[0].Changed, "%s is %s", tt.name, results[0].State)
		}
	}
	require.Eventually(t, func() bool { return b.inboxRows(t) == 0 }, deadline, tick)
	require.Equal(t, 2*len(tests)+1, b.count(t, `SELECT count(*) FROM effects`))
	require.Empty(t, b.letters(t))
}

// Nothing waits but what is always or never due: that is nothing to wait for, and
// no trouble.
func TestWork_NeverDue(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.exec(t, `INSERT INTO inbox_messages (consumer_id, message_id, ready_at)
		VALUES (7, message_id('never'), 'infinity'), (7, message_id('always'), '-infinity')`)
	sql, err := os.ReadFile("queries/next_due.sql")
	require.NoError(t, err)
	var due *time.Duration
	require.NoError(t, b.Pool.QueryRow(t.Context(), schema.Qualify(string(sql), b.Schema), 7).Scan(&due))
	require.Nil(t, due)
}

package main_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/internal/pgtest"
)

// Behind PgBouncer in transaction mode a second run finds the statements that
// the first one has prepared. The program prepares none.
func TestPgBouncer(t *testing.T) {
	t.Parallel()

	db := pgtest.New(t)
	deadLetters(t, db)
	events(t, db)
	through := &pgtest.DB{Schema: db.Schema, URL: db.PgBouncer(t)}

	for range 2 {
		for _, args := range [][]string{
			{"dlq", "list", "-consumer", "shipping"},
			{"dlq", "show", "1"},
			{"outbox", "status"},
			{"outbox", "list"},
			{"outbox", "show", eventID(2)},
			{"outbox", "purge", "-older", "400d", "-yes"},
			{"inbox", "purge", "-older", "400d", "-yes"},
			{"check", "-max-dead", "9"},
			{"migrate", "status"},
			{"migrate", "up"},
		} {
			require.Equal(t, works(t, db, args...), works(t, through, args...))
		}
	}
	require.Contains(t, works(t, through, "migrate", "down", "-to", "0", "-yes"), "took back 1 create_tables\n")
	require.Equal(t, "applied 1 create_tables\napplied 2 create_outbox\napplied 3 add_purge_turns\napplied 4 create_inbox\napplied 5 create_calls\napplied 6 add_outbox_functions\napplied 7 create_archive_batches\n", works(t, through, "migrate", "up"))
}

package outbox_test

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/schema"
)

// Case O9: somebody reads in a transaction that keeps its snapshot, a backup or
// a report, for as long as events are written and published. A queue that goes
// by the oldest snapshot stands still all that while (NikolayS/pgque). The relay
// publishes, in order. What it costs is measured by `make bench`
// (relay.held_snapshot): none of the rows that are done with can be vacuumed.
func TestRelay_HeldSnapshot(t *testing.T) {
	t.Parallel()

	for _, done := range []outbox.Done{outbox.Mark, outbox.Delete} {
		t.Run(fmt.Sprintf("done=%d", done), func(t *testing.T) {
			t.Parallel()

			b := setup(t)
			b.write(t, order("before", 1))
			reader, err := b.Pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
			require.NoError(t, err)
			defer func() { require.NoError(t, reader.Rollback(t.Context())) }()
			pending := func() (n int) {
				require.NoError(t, reader.QueryRow(t.Context(), schema.Qualify(`SELECT count(*) FROM semel.outbox WHERE published_at IS NULL`, b.Schema)).Scan(&n))
				return n
			}
			require.Equal(t, 1, pending(), "the snapshot is taken")
			var assigned bool // a writer that goes on holds more back than one that only reads
			require.NoError(t, reader.QueryRow(t.Context(), `SELECT pg_current_xact_id() IS NOT NULL`).Scan(&assigned))
			p := &recorder{ordered: true}
			cfg := quick()
			cfg.Done = done
			relay := b.relay(t, p, cfg)

			const rounds, aggregates = 40, 50
			for v := range int64(rounds) {
				var events []outbox.Event
				for a := range aggregates {
					events = append(events, order(fmt.Sprint(a), v+1))
				}
				b.write(t, events...)
			}

			require.Eventually(t, func() bool { return relay.Stats().Kinds["order"].Sent == 1+rounds*aggregates }, deadline, tick)
			requireOrder(t, p.messages(), 1+rounds*aggregates)
			require.Equal(t, 1, pending(), "it was held until the end")
		})
	}
}

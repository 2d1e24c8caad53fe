package outbox_test

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/outbox"
)

// What a relay has planned while the outbox was empty suits a full one too, though
// nobody has analyzed it: each event is looked up by its id.
func TestRelay_PlansWhileEmpty(t *testing.T) {
	t.Parallel()
	for _, done := range []outbox.Done{outbox.Mark, outbox.Delete} {
		t.Run([]string{"Mark", "Delete"}[done], func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.exec(t, `ALTER TABLE semel.outbox SET (autovacuum_enabled = false)`)
			config, err := pgxpool.ParseConfig(b.URL)
			require.NoError(t, err)
			config.MaxConns = 6
			config.ConnConfig.RuntimeParams["plan_cache_mode"] = "force_generic_plan" // else after five runs
			pool, err := pgxpool.NewWithConfig(t.Context(), config)
			require.NoError(t, err)
			t.Cleanup(pool.Close)
			relay := b.relayOn(t, pool, &recorder{ordered: true}, outbox.RelayConfig{Done: done})
			sent := func(n int64) func() bool {
				return func() bool { return relay.Stats().Kinds["order"].Sent == n }
			}
			for n := range int64(12) { // on whichever connection
				b.write(t, order("1", n+1))
				relay.Wake()
				require.Eventually(t, sent(n+1), deadline, tick)
			}
			const events = 2000

			b.exec(t, `INSERT INTO semel.outbox (id, aggregatetype, aggregateid, type)
				SELECT gen_random_uuid(), 'order', n::text, 'OrderPaid' FROM generate_series(1, $1::int) AS n`, events)
			relay.Wake()

			require.Eventually(t, sent(12+events), deadline, tick)
			relay.stop()
			pool.Close() // whose connections count what they did when they end
			require.Eventually(t, func() bool {
				return query[int](t, b, `SELECT idx_tup_read::int FROM pg_stat_user_indexes
					WHERE schemaname = $1 AND indexrelname = 'outbox_pkey'`, b.Schema) >= events
			}, deadline, tick, "events were looked up")
		})
	}
}

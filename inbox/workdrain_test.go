package inbox_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/inbox"
)

// Case U6: a client was closed while it finished its work, and panicked, or lost
// that the work was done (river#400). A worker ends at any moment, again and again:
// each message takes effect once, and after a drain nobody holds any.
func TestWork_DrainsAtAnyMoment(t *testing.T) {
	t.Parallel()

	const rounds, n = 30, 20
	for _, ordering := range []inbox.Ordering{inbox.PerKey, inbox.Strict} {
		t.Run(ordering.String(), func(t *testing.T) {
			t.Parallel()

			b := setup(t)
			stored := 0
			for range rounds {
				in := b.inbox(t, effect, inbox.Config{Ordering: ordering, WorkAhead: 8})
				for range n {
					_, err := in.Store(t.Context(), keyed(fmt.Sprint("evt_", stored), fmt.Sprint(stored%7)))
					require.NoError(t, err)
					stored++
				}
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(rand.N(15*time.Millisecond), cancel)
				require.NoError(t, in.Work(ctx))
				require.Zero(t, b.count(t, `SELECT count(*) FROM inbox_messages WHERE lease_owner IS NOT NULL`))
				require.Equal(t, stored-b.inboxRows(t), b.count(t, `SELECT count(*) FROM effects`), "what is not in the inbox took effect")
			}
			works(t, b.inbox(t, effect, inbox.Config{Ordering: ordering}))
			require.Eventually(t, func() bool { return b.inboxRows(t) == 0 }, deadline, tick)
			b.requireEffectsOnce(t, stored)
		})
	}
}

// Case U6: the pool is closed under a worker, and its process goes on: it ends when
// it is told to, without a panic. What it held is handled when the leases are over,
// once.
func TestWork_PoolIsClosed(t *testing.T) {
	t.Parallel()

	const rounds, n = 15, 20
	b := setup(t)
	stored := 0
	cfg := inbox.Config{
		WorkAhead: 8, Lease: 200 * time.Millisecond, DrainTimeout: 100 * time.Millisecond,
		StatementTimeout: time.Second,
	}
	for range rounds {
		pool, err := pgxpool.New(t.Context(), b.URL)
		require.NoError(t, err)
		in := b.inboxOn(t, pool, "shipping", effect, cfg)
		for range n {
			_, err := in.Store(t.Context(), keyed(fmt.Sprint("evt_", stored), fmt.Sprint(stored%7)))
			require.NoError(t, err)
			stored++
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- in.Work(ctx) }()
		<-time.After(rand.N(15 * time.Millisecond)) // at any moment
		pool.Close()
		cancel()
		require.NoError(t, <-ended)
	}
	works(t, b.inbox(t, effect, cfg))
	require.Eventually(t, func() bool { return b.inboxRows(t) == 0 }, deadline, tick)
	b.requireEffectsOnce(t, stored)
	require.Empty(t, b.letters(t))
}

// requireEffectsOnce requires that evt_0 to evt_n-1 took effect, once each.
func (b *testBundle) requireEffectsOnce(t *testing.T, n int) {
	t.Helper()
	rows, err := b.Pool.Query(t.Context(), `SELECT message_id || ': ' || count(e) FROM (SELECT 'evt_' || i AS message_id FROM generate_series(0, $1::int - 1) AS i) AS sent
		LEFT JOIN effects AS e USING (message_id) GROUP BY message_id HAVING count(e) <> 1`, n)
	require.NoError(t, err)
	wrong, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	require.Empty(t, wrong, "PROMISE BROKEN: effects of a message")
	require.Equal(t, n, b.count(t, `SELECT count(*) FROM effects`), "PROMISE BROKEN: effects")
}

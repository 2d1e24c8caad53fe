package pgtest

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
)

// returnTimeout is how long a goroutine that outlives its test by a moment has
// to give its connection back.
const returnTimeout = 5 * time.Second

// requireReturned fails the test unless all connections are back and fit for
// the next user, and closes the pool. A pool that misses some stays open:
// Close would wait for them for ever.
func requireReturned(tb testing.TB, pool *pgxpool.Pool) {
	tb.Helper()
	require.Eventually(tb, func() bool { return pool.Stat().AcquiredConns() == 0 },
		returnTimeout, time.Millisecond, "connections were not returned to the pool")
	defer pool.Close()

	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	for _, conn := range pool.AcquireAllIdle(ctx) {
		defer conn.Release()
		var sum, locks int
		err := conn.QueryRow(ctx, `
			SELECT (SELECT sum(n) FROM generate_series(1, 10) AS n),
			       (SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory')`,
		).Scan(&sum, &locks)
		require.NoError(tb, err, "use a connection after the test")
		require.Equal(tb, 55, sum, "a connection gives answers to something else")
		require.Zero(tb, locks, "a connection still holds advisory locks")
	}
}

package outbox_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/outbox"
)

// fill writes n events of each state, all a month old: written, published and
// discarded then. They lie side by side in the same blocks.
func (b *testBundle) fill(t *testing.T, n int) {
	t.Helper()
	b.exec(t, `INSERT INTO semel.outbox (id, aggregatetype, aggregateid, type, created_at, published_at, discarded_at, next_attempt_at, quarantined_at)
		SELECT gen_random_uuid(), s, n, 'OrderPaid', old,
			CASE s WHEN 'published' THEN old END, CASE s WHEN 'discarded' THEN old END,
			CASE s WHEN 'waiting' THEN old END, CASE WHEN s IN ('quarantined', 'discarded') THEN old END
		FROM generate_series(1, $1::int) AS n,
			unnest('{pending,published,waiting,discarded,quarantined}'::text[]) AS s,
			(SELECT clock_timestamp() - interval '30 days' AS old) AS month`, n)
}

// counts is how many events of each state there are.
func (b *testBundle) counts(t *testing.T) map[string]int {
	t.Helper()
	rows, err := b.Pool.Query(t.Context(), `SELECT state, count(*)::int FROM events GROUP BY state`)
	require.NoError(t, err)
	counts, state, n := map[string]int{}, "", 0
	_, err = pgx.ForEachRow(rows, []any{&state, &n}, func() error {
		counts[state] = n
		return nil
	})
	require.NoError(t, err)
	return counts
}

// Case O10: a purge meets pending and quarantined events among old ones (seed documents)
func TestPurge(t *testing.T) {
	t.Parallel()

	b := setup(t)
	store := outbox.NewStore(b.Schema)
	const each = 5000
	b.fill(t, each)
	b.exec(t, `UPDATE semel.outbox SET published_at = clock_timestamp() - interval '6 days' WHERE aggregatetype = 'published' AND aggregateid::int > $1`, each-100)
	steps, last := 0, 0.0

	deleted, err := store.Purge(t.Context(), b.Pool, 7*24*time.Hour, outbox.PurgeConfig{Batch: 1000, Progress: func(n int64, part float64) {
		steps++
		require.LessOrEqual(t, n, int64(1000*steps), "more than a batch in one transaction")
		last = part
	}})

	require.NoError(t, err)
	require.Equal(t, int64(2*each-100), deleted)
	require.Equal(t, map[string]int{"pending": each, "waiting": each, "quarantined": each, "published": 100}, b.counts(t))
	require.InDelta(t, 1, last, 1e-9)
	require.GreaterOrEqual(t, steps, 10)

	deleted, err = store.Purge(t.Context(), b.Pool, 7*24*time.Hour, outbox.PurgeConfig{})
	require.NoError(t, err)
	require.Zero(t, deleted)
}

// What people and relays decide while a purge is on its way is not undone.
func TestPurge_WhileRelaysWork(t *testing.T) {
	t.Parallel()

	b := setup(t)
	const each = 3000
	b.fill(t, each)
	b.exec(t, `UPDATE semel.outbox SET next_attempt_at = NULL, quarantined_at = NULL`) // all go out
	p := &recorder{ordered: true}
	b.relay(t, p, quick())
	b.relay(t, p, quick())
	total := int64(0)
	for began := time.Now(); ; {
		require.Less(t, time.Since(began), deadline)
		n, err := outbox.NewStore(b.Schema).Purge(t.Context(), b.Pool, 7*24*time.Hour, outbox.PurgeConfig{Batch: 500})
		require.NoError(t, err)
		total += n
		if len(p.messages()) >= 3*each && b.counts(t)["pending"] == 0 {
			break
		}
	}

	require.Equal(t, int64(2*each), total, "the published and discarded ones of a month ago")
	require.Len(t, p.messages(), 3*each)
	require.Equal(t, map[string]int{"published": 3 * each}, b.counts(t))
}

func TestPurge_Ended(t *testing.T) {
	t.Parallel()

	b := setup(t)
	store := outbox.NewStore(b.Schema)
	b.fill(t, 5000)
	ctx, cancel := context.WithCancelCause(t.Context())
	stopped := errors.New("stopped")

	deleted, err := store.Purge(ctx, b.Pool, 0, outbox.PurgeConfig{Batch: 100, Progress: func(int64, float64) { cancel(stopped) }})

	require.ErrorIs(t, err, stopped)
	require.ErrorContains(t, err, "100 deleted")
	require.Equal(t, int64(100), deleted)
	counts := b.counts(t)
	require.Equal(t, 2*5000-100, counts["published"]+counts["discarded"])

	_, err = store.Purge(t.Context(), b.Pool, -1, outbox.PurgeConfig{})
	require.ErrorContains(t, err, "must not be negative")
	_, err = store.Purge(t.Context(), b.Pool, 0, outbox.PurgeConfig{Batch: -1})
	require.ErrorContains(t, err, "must not be negative")
}

package dedup_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/dedup"
	"github.com/semel-go/semel/internal/pgtest"
)

// month is the retention of these tests.
const month = 30 * 24 * time.Hour

// purgeBundle is a store whose rows are easily made old.
type purgeBundle struct {
	*pgtest.DB
	store dedup.Store
}

func setupPurge(t *testing.T) *purgeBundle {
	t.Helper()
	db := pgtest.New(t)
	b := &purgeBundle{DB: db, store: dedup.NewStore(db.Schema)}
	for _, consumer := range []string{"shipping", "billing"} {
		require.NoError(t, b.store.Register(t.Context(), db.Pool, consumer))
	}
	return b
}

func (b *purgeBundle) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	_, err := b.Pool.Exec(t.Context(), sql, args...)
	require.NoError(t, err)
}

// add writes a row of a message that a consumer handled so many days ago.
func (b *purgeBundle) add(t *testing.T, consumer, id string, outcome, days int) {
	t.Helper()
	b.exec(t, `INSERT INTO processed_messages (consumer_id, message_id, message_text, outcome, processed_at)
		VALUES (consumer_id($1), message_id($2), $2, $3, date_trunc('day', now()) - make_interval(days => $4))`, consumer, id, outcome, days)
}

func (b *purgeBundle) strings(t *testing.T, sql string) []string {
	t.Helper()
	rows, err := b.Pool.Query(t.Context(), sql)
	require.NoError(t, err)
	got, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return got
}

func (b *purgeBundle) left(t *testing.T) []string {
	t.Helper()
	return b.strings(t, `SELECT consumer || ' ' || message FROM processed ORDER BY consumer, message`)
}

// watermarks are how many days ago each consumer's lies.
func (b *purgeBundle) watermarks(t *testing.T) []string {
	t.Helper()
	return b.strings(t, `SELECT name || ' ' || coalesce(extract(day FROM date_trunc('day', now()) - purged_before)::text, 'none') FROM consumers ORDER BY name`)
}

func TestPurge(t *testing.T) {
	t.Parallel()

	b := setupPurge(t)
	b.add(t, "shipping", "young", 1, 29)
	b.add(t, "shipping", "old", 1, 31)
	b.add(t, "shipping", "older", 3, 40)
	b.add(t, "billing", "old", 2, 35)
	b.add(t, "unregistered", "old", 1, 50)

	deleted, err := b.store.Purge(t.Context(), b.Pool, month, dedup.PurgeConfig{Consumer: "billing"})
	require.NoError(t, err)
	require.Equal(t, int64(1), deleted)
	require.Equal(t, []string{"billing 35", "shipping none"}, b.watermarks(t))

	deleted, err = b.store.Purge(t.Context(), b.Pool, month, dedup.PurgeConfig{Batch: 1})
	require.NoError(t, err)
	require.Equal(t, int64(3), deleted)
	require.Equal(t, []string{"shipping young"}, b.left(t))
	require.Equal(t, []string{"billing 35", "shipping 31"}, b.watermarks(t), "the latest that is gone, and not the retention")

	b.add(t, "shipping", "late", 1, 33)
	deleted, err = b.store.Purge(t.Context(), b.Pool, month, dedup.PurgeConfig{})
	require.NoError(t, err)
	require.Equal(t, int64(1), deleted)
	require.Equal(t, []string{"billing 35", "shipping 31"}, b.watermarks(t), "it never goes back")
}

// What waits for a person, or to be handled later, stays however old it is.
func TestPurge_KeepsWhatIsOpen(t *testing.T) {
	t.Parallel()

	b := setupPurge(t)
	letter := func(id, reason, state string) {
		b.exec(t, `INSERT INTO dead_letters (consumer_id, message_id, message_text, fingerprint, reason, state)
			VALUES (consumer_id('shipping'), message_id($1), $1, 1, $2, $3)`, id, reason, state)
	}
	for _, state := range []string{"open", "replaying", "resolved", "discarded"} {
		b.add(t, "shipping", "dead-"+state, 5, 40)
		letter("dead-"+state, "permanent", state)
		b.add(t, "shipping", "mismatch-"+state, 1, 40)
		letter("mismatch-"+state, "mismatch", state)
	}
	b.add(t, "shipping", "stored", 4, 40)
	b.add(t, "billing", "dead-open", 1, 40) // another consumer's

	deleted, err := b.store.Purge(t.Context(), b.Pool, month, dedup.PurgeConfig{})

	require.NoError(t, err)
	require.Equal(t, int64(5), deleted)
	require.Equal(t, []string{
		"shipping dead-open", "shipping dead-replaying", "shipping mismatch-open", "shipping mismatch-replaying", "shipping stored",
	}, b.left(t))
}

func TestPurge_Refused(t *testing.T) {
	t.Parallel()

	b := setupPurge(t)
	b.add(t, "shipping", "old", 1, 40)
	purge := func(retention time.Duration, cfg dedup.PurgeConfig) error {
		_, err := b.store.Purge(t.Context(), b.Pool, retention, cfg)
		return err
	}

	require.ErrorContains(t, purge(dedup.MinRetention-1, dedup.PurgeConfig{}), "it must be at least 24h0m0s")
	require.ErrorContains(t, purge(month, dedup.PurgeConfig{Batch: -1}), "must not be negative")
	require.ErrorIs(t, purge(month, dedup.PurgeConfig{Consumer: " "}), dedup.ErrBadConsumer)
	require.Equal(t, []string{"shipping old"}, b.left(t))

	ctx, cancel := context.WithCancelCause(t.Context())
	stopped := errors.New("stopped")
	cancel(stopped)
	_, err := b.store.Purge(ctx, b.Pool, month, dedup.PurgeConfig{})
	require.Error(t, err)
}

// Of many that ask at once one may purge, and each consumer has its own turn.
func TestTakePurgeTurn(t *testing.T) {
	t.Parallel()

	b := setupPurge(t)
	const every = 6 * time.Hour
	ask := func(consumer string) (taken int64) {
		var wins atomic.Int64
		var asking sync.WaitGroup
		for range 16 {
			asking.Go(func() {
				mine, err := b.store.TakePurgeTurn(t.Context(), b.Pool, consumer, every)
				if err != nil {
					t.Error(err)
				}
				if mine {
					wins.Add(1)
				}
			})
		}
		asking.Wait()
		return wins.Load()
	}

	require.Zero(t, ask("shipping"), "a new consumer has nothing old")
	b.exec(t, `UPDATE consumers SET created_at = created_at - interval '1 day'`)
	require.EqualValues(t, 1, ask("shipping"))
	require.Zero(t, ask("shipping"))
	require.EqualValues(t, 1, ask("billing"))
	b.exec(t, `UPDATE consumers SET purging_at = purging_at - interval '5 h'`)
	require.Zero(t, ask("shipping"))
	taken, err := b.store.TakePurgeTurn(t.Context(), b.Pool, "shipping", 0)
	require.NoError(t, err)
	require.True(t, taken, "whoever is still at it says so")
	b.exec(t, `UPDATE consumers SET purging_at = purging_at - interval '2 h'`)
	require.Zero(t, ask("shipping"))
	require.EqualValues(t, 1, ask("billing"))
	b.exec(t, `UPDATE consumers SET purging_at = clock_timestamp() + interval '1 year'`)
	require.EqualValues(t, 1, ask("shipping"), "the clock of a server that is gone says nothing")

	taken, err = b.store.TakePurgeTurn(t.Context(), b.Pool, "nobody", 0)
	require.NoError(t, err)
	require.False(t, taken)
}

// Case D15: a purge while four writers insert (NServiceBus.Persistence.Sql#778; MassTransit#5918)
//
// Scaled down: 300,000 old rows. Every tenth claim is of an id that is being
// purged: it is a duplicate, or it is claimed anew and stays. Two purges run at
// once.
func TestPurge_WhileWritersInsert(t *testing.T) {
	t.Parallel()

	b := setupPurge(t)
	const old = 300_000
	b.exec(t, `INSERT INTO processed_messages (consumer_id, message_id, outcome, processed_at)
		SELECT consumer_id(CASE n % 2 WHEN 0 THEN 'shipping' ELSE 'billing' END), lpad(to_hex(n), 32, '0')::uuid, 1, date_trunc('day', now()) - interval '40 days'
		FROM generate_series(1, $1::int) AS n`, old)

	var stop atomic.Bool
	var writers, purges sync.WaitGroup
	claimed := make([][]string, 4)
	waits := make([][]time.Duration, 4)
	failed := make(chan error, 8)
	for w := range claimed {
		writers.Go(func() {
			for n := 0; !stop.Load(); n++ {
				id := uuid.NewString()
				if n%10 == 0 {
					id = fmt.Sprintf("00000000-0000-0000-0000-%012x", 2*(1+(n*7919+w)%(old/2)))
				}
				began := time.Now()
				ok, err := b.claim(t.Context(), id)
				if err != nil {
					failed <- fmt.Errorf("claim %s: %w", id, err)
					return
				}
				waits[w] = append(waits[w], time.Since(began))
				if ok {
					claimed[w] = append(claimed[w], id)
				}
			}
		})
	}
	var deleted [2]int64
	began := time.Now()
	for i := range deleted {
		purges.Go(func() {
			var err error
			if deleted[i], err = b.store.Purge(t.Context(), b.Pool, month, dedup.PurgeConfig{}); err != nil {
				failed <- err
			}
		})
	}
	purges.Wait()
	took := time.Since(began)
	stop.Store(true)
	writers.Wait()
	close(failed)
	for err := range failed {
		require.NoError(t, err)
	}

	all, times := slices.Concat(claimed...), slices.Concat(waits...)
	slices.Sort(times)
	t.Logf("%d rows in %s; %d claims meanwhile, p50 %s, p99 %s, longest %s", old, took, len(times), times[len(times)/2], times[len(times)*99/100], times[len(times)-1])
	require.Equal(t, int64(old), deleted[0]+deleted[1], "each old row once")
	var found, rest int
	require.NoError(t, b.Pool.QueryRow(t.Context(), `SELECT count(*) FILTER (WHERE message_id::text = ANY ($1)), count(*) FROM processed_messages`, all).Scan(&found, &rest))
	require.Equal(t, len(all), found, "what was claimed while the purge ran is there")
	require.Equal(t, rest, found, "and nothing else")
	require.Equal(t, []string{"billing 40", "shipping 40"}, b.watermarks(t))
	require.True(t, slices.ContainsFunc(all, func(id string) bool { return strings.HasPrefix(id, "00000000-") }), "no claim met the purge")
}

// claim claims a message for shipping in a transaction of its own; a lock that
// is held for long fails it.
func (b *purgeBundle) claim(ctx context.Context, id string) (claimed bool, err error) {
	err = pgx.BeginFunc(ctx, b.Pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SET LOCAL lock_timeout = '20s'`); err != nil {
			return err
		}
		claimed, err = b.store.Claim(ctx, tx, "shipping", id)
		return err
	})
	return claimed && err == nil, err
}

// Case D15: the table levels off once it is purged as fast as it grows (NServiceBus.Persistence.Sql#778; MassTransit#5918)
func TestPurge_TheTableLevelsOff(t *testing.T) {
	t.Parallel()

	b := setupPurge(t)
	var sizes []int64
	for range 5 {
		b.exec(t, `INSERT INTO processed_messages (consumer_id, message_id, outcome, processed_at)
			SELECT consumer_id('shipping'), gen_random_uuid(), 1, clock_timestamp() - interval '40 days' FROM generate_series(1, 60000)`)
		deleted, err := b.store.Purge(t.Context(), b.Pool, month, dedup.PurgeConfig{})
		require.NoError(t, err)
		require.Equal(t, int64(60_000), deleted)
		b.awaitHorizon(t)
		b.exec(t, `VACUUM (TRUNCATE false) processed_messages`) // as autovacuum does
		var size int64
		require.NoError(t, b.Pool.QueryRow(t.Context(), `SELECT pg_total_relation_size('processed_messages')`).Scan(&size))
		sizes = append(sizes, size)
	}
	t.Logf("bytes after each round: %d", sizes)
	require.Less(t, sizes[4], 2*sizes[0], "five times as much went in")
}

// awaitHorizon waits until no transaction on the server, of other tests for one,
// began before now: a vacuum keeps what they could still see.
func (b *purgeBundle) awaitHorizon(t *testing.T) {
	t.Helper()
	var now string
	require.NoError(t, b.Pool.QueryRow(t.Context(), `SELECT pg_current_xact_id()::xid::text`).Scan(&now))
	require.Eventually(t, func() bool {
		var older int
		err := b.Pool.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity
			WHERE age(backend_xmin) > age($1::text::xid) OR age(backend_xid) > age($1::text::xid)`, now).Scan(&older)
		return err == nil && older == 0
	}, 3*time.Minute, 20*time.Millisecond)
}

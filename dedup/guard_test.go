package dedup_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/dedup"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/internal/pgtest"
)

// guardBundle is a handler behind a version guard that writes down what runs.
type guardBundle struct {
	*pgtest.DB
	store dedup.Store
}

func setupGuard(t *testing.T) *guardBundle {
	t.Helper()
	db := pgtest.New(t)
	b := &guardBundle{DB: db, store: dedup.NewStore(db.Schema)}
	_, err := db.Pool.Exec(t.Context(), `CREATE TABLE ran (n bigint GENERATED ALWAYS AS IDENTITY, key text NOT NULL, version bigint NOT NULL)`)
	require.NoError(t, err)
	return b
}

// noteRun is the handler.
func noteRun(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
	_, err := tx.Exec(ctx, `INSERT INTO ran (key, version) VALUES ($1, $2)`, string(msg.Key), msg.Version)
	return err
}

// handle runs h for msg in a transaction, as the engine does.
func (b *guardBundle) handle(ctx context.Context, h handler.Func, consumer string, msg *handler.Message, replay bool) (handler.Outcome, error) {
	cause := &handler.Cause{Consumer: consumer, Message: msg, Attempt: 1, Replay: replay}
	err := pgx.BeginFunc(ctx, b.Pool, func(tx pgx.Tx) error { return h(handler.WithCause(ctx, cause), tx, msg) })
	return cause.Outcome(), err
}

// sends handles a version of order 1, and requires that it ends so.
func (b *guardBundle) sends(t *testing.T, h handler.Func, version int64, want handler.Outcome) {
	t.Helper()
	outcome, err := b.handle(t.Context(), h, "shipping", order("1", version), false)
	require.NoError(t, err)
	require.Equal(t, want, outcome, "version %d", version)
}

func (b *guardBundle) ran(t *testing.T) (versions []int64) {
	t.Helper()
	rows, err := b.Pool.Query(t.Context(), `SELECT version FROM ran ORDER BY n`)
	require.NoError(t, err)
	versions, err = pgx.CollectRows(rows, pgx.RowTo[int64])
	require.NoError(t, err)
	return versions
}

// knows is what consumer shipping knows of order 1.
func (b *guardBundle) knows(t *testing.T) dedup.EntityVersion {
	t.Helper()
	v, err := b.store.Version(t.Context(), b.Pool, "shipping", "", []byte("1"))
	require.NoError(t, err)
	return v
}

func order(key string, version int64) *handler.Message {
	return &handler.Message{ID: "evt_1", Type: "order.updated", Key: []byte(key), Version: version}
}

func TestVersionGuard(t *testing.T) {
	t.Parallel()

	b := setupGuard(t)
	h := b.store.VersionGuard(dedup.GuardConfig{})(noteRun)
	for _, tt := range []struct {
		consumer, key string
		version       int64
		want          handler.Outcome
	}{
		{"shipping", "1", 5, handler.Processed},
		{"shipping", "1", 5, handler.Processed}, // equal runs
		{"shipping", "1", 4, handler.Superseded},
		{"shipping", "1", 9, handler.Processed},
		{"shipping", "1", 5, handler.Superseded},
		{"shipping", "2", 4, handler.Processed},             // another entity
		{"invoicing", "1", 3, handler.Processed},            // another consumer
		{"shipping", "1", 0, handler.Processed},             // it has no version
		{"shipping", "", 1, handler.Processed},              // it is about nothing
		{"shipping", "1", -3, handler.Superseded},           // a version like any other
		{"shipping", "1", math.MaxInt64, handler.Processed}, // neither end of the numbers is special
		{"shipping", "3", math.MinInt64, handler.Processed},
		{"shipping", "3", math.MaxInt64, handler.Processed},
		{"shipping", "3", math.MinInt64, handler.Superseded},
	} {
		outcome, err := b.handle(t.Context(), h, tt.consumer, order(tt.key, tt.version), false)
		require.NoError(t, err)
		require.Equal(t, tt.want, outcome, "%+v", tt)
	}
	require.Equal(t, []int64{5, 5, 9, 4, 3, 0, 1, math.MaxInt64, math.MinInt64, math.MaxInt64}, b.ran(t))

	v := b.knows(t)
	require.Equal(t, dedup.MessageID("evt_1"), v.MessageID)
	require.Equal(t, "1", string(v.Entity))
	require.WithinDuration(t, time.Now(), v.UpdatedAt, time.Hour)
	require.Zero(t, v.Gaps, "nobody asked to count them")
	_, err := b.store.Version(t.Context(), b.Pool, "shipping", "", []byte("unheard of"))
	require.ErrorIs(t, err, dedup.ErrNoVersion)
}

// What a handler failed to do takes its version back: the same one may come again,
// and what is older may still run.
func TestVersionGuard_FailedHandler(t *testing.T) {
	t.Parallel()

	b := setupGuard(t)
	broken := errors.New("broken")
	fails := b.store.VersionGuard(dedup.GuardConfig{})(func(context.Context, pgx.Tx, *handler.Message) error { return broken })
	_, err := b.handle(t.Context(), fails, "shipping", order("1", 7), false)
	require.ErrorIs(t, err, broken)

	h := b.store.VersionGuard(dedup.GuardConfig{})(noteRun)
	b.sends(t, h, 3, handler.Processed)
	b.sends(t, h, 7, handler.Processed)
}

func TestVersionGuard_ByTime(t *testing.T) {
	t.Parallel()

	b := setupGuard(t)
	h := b.store.VersionGuard(dedup.GuardConfig{Version: dedup.ByTime})(noteRun)
	at := time.Date(2026, 3, 1, 12, 0, 0, 2000, time.UTC)
	for _, tt := range []struct {
		at   time.Time
		want handler.Outcome
	}{
		{at, handler.Processed},
		{at.Add(-time.Microsecond), handler.Superseded},
		{at.In(time.FixedZone("", 3600)), handler.Processed},
		{at.Add(time.Microsecond), handler.Processed},
		{at, handler.Superseded},
		{time.Date(1969, 1, 1, 0, 0, 0, 0, time.UTC), handler.Superseded},
		{time.Time{}, handler.Processed}, // nobody knows when
	} {
		msg := order("1", 1)
		msg.OccurredAt = tt.at
		outcome, err := b.handle(t.Context(), h, "shipping", msg, false)
		require.NoError(t, err)
		require.Equal(t, tt.want, outcome, "%s", tt.at)
	}
}

// Two kinds of entities may have the same keys.
func TestVersionGuard_Kind(t *testing.T) {
	t.Parallel()

	b := setupGuard(t)
	orders := b.store.VersionGuard(dedup.GuardConfig{Kind: "order"})(noteRun)
	customers := b.store.VersionGuard(dedup.GuardConfig{
		Kind: "customer", Entity: func(msg *handler.Message) []byte { return msg.Headers[0].Value },
	})(noteRun)
	msg := order("another", 2)
	msg.Headers = handler.Headers{{Name: "customer", Value: []byte("1")}}

	b.sends(t, orders, 9, handler.Processed)
	outcome, err := b.handle(t.Context(), customers, "shipping", msg, false)

	require.NoError(t, err)
	require.Equal(t, handler.Processed, outcome)
	v, err := b.store.Version(t.Context(), b.Pool, "shipping", "customer", []byte("1"))
	require.NoError(t, err)
	require.EqualValues(t, 2, v.Version)
	require.Equal(t, "customer", v.Kind)
}

func TestVersionGuard_Required(t *testing.T) {
	t.Parallel()

	b := setupGuard(t)
	h := b.store.VersionGuard(dedup.GuardConfig{Required: true})(noteRun)
	for _, msg := range []*handler.Message{order("1", 0), order("", 1)} {
		_, err := b.handle(t.Context(), h, "shipping", msg, false)
		require.ErrorIs(t, err, dedup.ErrUnversioned)
		require.True(t, handler.IsPermanent(err))
	}
	b.sends(t, h, 1, handler.Processed)
}

// Without the engine nobody says whose version it is.
func TestVersionGuard_NoCause(t *testing.T) {
	t.Parallel()

	b := setupGuard(t)
	h := b.store.VersionGuard(dedup.GuardConfig{})(noteRun)
	err := pgx.BeginFunc(t.Context(), b.Pool, func(tx pgx.Tx) error { return h(t.Context(), tx, order("1", 1)) })
	require.ErrorContains(t, err, "handler.WithCause")
}

func TestVersionGuard_ImpossibleConfig(t *testing.T) {
	t.Parallel()

	require.Panics(t, func() { dedup.VersionGuard(dedup.GuardConfig{Hold: -1}) })
	require.Panics(t, func() { dedup.VersionGuard(dedup.GuardConfig{First: -1}) })
}

func TestVersionGuard_CountGaps(t *testing.T) {
	t.Parallel()

	b := setupGuard(t)
	h := b.store.VersionGuard(dedup.GuardConfig{CountGaps: true})(noteRun)
	for _, tt := range []struct {
		version int64
		want    handler.Outcome
		gaps    int64
	}{
		{5, handler.Processed, 0}, // an entity may begin with any
		{6, handler.Processed, 0},
		{6, handler.Processed, 0},
		{9, handler.Processed, 2},
		{7, handler.Superseded, 1},  // it came after all
		{4, handler.Superseded, 1},  // nobody waited for it
		{12, handler.Processed, 3},  // 8, 10, 11
		{11, handler.Superseded, 2}, // 8, 10
	} {
		b.sends(t, h, tt.version, tt.want)
		require.Equal(t, tt.gaps, b.knows(t).Gaps, "after version %d", tt.version)
	}
	_, err := b.handle(t.Context(), h, "shipping", order("2", 3), false)
	require.NoError(t, err)

	gaps, err := b.store.Gaps(t.Context(), b.Pool, "shipping", 10)
	require.NoError(t, err)
	require.Len(t, gaps, 1)
	require.Equal(t, "1", string(gaps[0].Entity))
	gaps, err = b.store.Gaps(t.Context(), b.Pool, "invoicing", 10)
	require.NoError(t, err)
	require.Empty(t, gaps)

	for _, version := range []int64{8, 10, 3, 2} {
		b.sends(t, h, version, handler.Superseded)
	}
	gaps, err = b.store.Gaps(t.Context(), b.Pool, "shipping", 10)
	require.NoError(t, err)
	require.Empty(t, gaps)
}

// A consumer that has heard of every entity from its beginning.
func TestVersionGuard_First(t *testing.T) {
	t.Parallel()

	b := setupGuard(t)
	h := b.store.VersionGuard(dedup.GuardConfig{CountGaps: true, First: 1})(noteRun)
	b.sends(t, h, 3, handler.Processed)
	require.EqualValues(t, 2, b.knows(t).Gaps)
	b.sends(t, h, 1, handler.Superseded)
	b.sends(t, h, 2, handler.Superseded)
	require.Zero(t, b.knows(t).Gaps)
}

// A version waits for those below it. A person may let it run without them.
func TestVersionGuard_Hold(t *testing.T) {
	t.Parallel()

	b := setupGuard(t)
	h := b.store.VersionGuard(dedup.GuardConfig{Hold: 7 * time.Second, First: 1})(noteRun)
	held := func(version int64) {
		t.Helper()
		_, err := b.handle(t.Context(), h, "shipping", order("1", version), false)
		require.ErrorIs(t, err, dedup.ErrGap)
		require.False(t, handler.IsPermanent(err))
		delay, ok := handler.RetryDelay(err)
		require.True(t, ok)
		require.Equal(t, 7*time.Second, delay)
	}
	held(2)
	b.sends(t, h, 1, handler.Processed)
	held(3)
	b.sends(t, h, 2, handler.Processed)
	b.sends(t, h, 2, handler.Processed)
	b.sends(t, h, 3, handler.Processed)
	held(5)

	outcome, err := b.handle(t.Context(), h, "shipping", order("1", 5), true)
	require.NoError(t, err)
	require.Equal(t, handler.Processed, outcome)
	require.EqualValues(t, 1, b.knows(t).Gaps)
	b.sends(t, h, 6, handler.Processed)
	b.sends(t, h, 4, handler.Superseded)
	require.Zero(t, b.knows(t).Gaps)
	require.Equal(t, []int64{1, 2, 2, 3, 5, 6}, b.ran(t))
}

// Handlers of one entity wait for each other, whatever process they are in. Each
// sees what the one before it has left: also an older one that waited for a newer.
func TestVersionGuard_WaitsForTheFirst(t *testing.T) {
	t.Parallel()

	for _, tt := range []struct {
		name   string
		commit bool
		want   handler.Outcome
	}{
		{name: "Commits", commit: true, want: handler.Superseded},
		{name: "RollsBack", want: handler.Processed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			b := setupGuard(t)
			h := b.store.VersionGuard(dedup.GuardConfig{})(noteRun)
			first, err := b.Pool.Begin(t.Context())
			require.NoError(t, err)
			newer := order("1", 2)
			require.NoError(t, h(handler.WithCause(t.Context(), &handler.Cause{Consumer: "shipping", Message: newer}), first, newer))

			second, err := b.Pool.Begin(t.Context())
			require.NoError(t, err)
			pid := second.Conn().PgConn().PID()
			older := order("1", 1)
			cause := &handler.Cause{Consumer: "shipping", Message: older}
			done := make(chan error, 1)
			go func() { done <- h(handler.WithCause(t.Context(), cause), second, older) }()
			require.Eventually(t, func() bool {
				var waits bool
				require.NoError(t, b.Pool.QueryRow(t.Context(), `SELECT coalesce(wait_event_type = 'Lock', false) FROM pg_stat_activity WHERE pid = $1`, pid).Scan(&waits))
				return waits
			}, time.Minute, time.Millisecond)
			if tt.commit {
				require.NoError(t, first.Commit(t.Context()))
			} else {
				require.NoError(t, first.Rollback(t.Context()))
			}
			require.NoError(t, <-done)
			require.NoError(t, second.Commit(t.Context()))
			require.Equal(t, tt.want, cause.Outcome())
		})
	}
}

// An impatient session that does not get the entity spends no attempt on it; any
// other error of the statement has the engine look at the database.
func TestVersionGuard_Errors(t *testing.T) {
	t.Parallel()

	b := setupGuard(t)
	h := b.store.VersionGuard(dedup.GuardConfig{})(noteRun)
	b.sends(t, h, 1, handler.Processed)
	first, err := b.Pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = first.Exec(t.Context(), `SELECT FROM key_versions FOR UPDATE`)
	require.NoError(t, err)

	second, err := b.Pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = second.Exec(t.Context(), `SET LOCAL lock_timeout = '10ms'`)
	require.NoError(t, err)
	msg := order("1", 2)
	ctx := handler.WithCause(t.Context(), &handler.Cause{Consumer: "shipping", Message: msg})
	err = h(ctx, second, msg)
	require.True(t, handler.IsInFlight(err), "%v", err)

	err = h(ctx, second, msg) // the transaction is aborted
	require.True(t, handler.IsOutage(err), "%v", err)
	require.NoError(t, second.Rollback(t.Context()))
	require.NoError(t, first.Rollback(t.Context()))
}

// Every version of some entities at once, in no order, on two pools as two
// processes have them. Whatever runs, no older one runs over a newer, and the
// highest ends up.
func TestVersionGuard_ManyAtOnce(t *testing.T) {
	t.Parallel()

	const versions, workers = 60, 12
	b := setupGuard(t)
	other := &guardBundle{DB: b.DB, store: b.store}
	h := b.store.VersionGuard(dedup.GuardConfig{CountGaps: true})(noteRun)
	messages := make(chan *handler.Message, 2*versions)
	for _, i := range rand.Perm(2 * versions) {
		messages <- order([]string{"1", "2"}[i%2], int64(i/2)+1)
	}
	close(messages)
	var wg sync.WaitGroup
	for i := range workers {
		pool := []*guardBundle{b, other}[i%2]
		wg.Go(func() {
			for msg := range messages {
				if _, err := pool.handle(t.Context(), h, "shipping", msg, false); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()

	var back, highest int
	require.NoError(t, b.Pool.QueryRow(t.Context(), `SELECT count(*) FILTER (WHERE version < before), max(version)
		FROM (SELECT version, lag(version) OVER (PARTITION BY key ORDER BY n) AS before FROM ran) AS r`).Scan(&back, &highest))
	require.Zero(t, back, "older ones ran over newer ones")
	require.Equal(t, versions, highest)
	require.EqualValues(t, versions, b.knows(t).Version)
	var lowest int64 // what is below the first that ran was never waited for
	require.NoError(t, b.Pool.QueryRow(t.Context(), `SELECT known_from FROM key_versions WHERE key = '1'`).Scan(&lowest))
	require.Zero(t, b.knows(t).Gaps, "every version came, first seen %d", lowest+1)
}

// Above READ COMMITTED one that met another's version is run again by the engine.
func TestVersionGuard_RepeatableRead(t *testing.T) {
	t.Parallel()

	b := setupGuard(t)
	h := b.store.VersionGuard(dedup.GuardConfig{})(noteRun)
	b.sends(t, h, 1, handler.Processed)
	tx, err := b.Pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `SELECT 1`)
	require.NoError(t, err)
	b.sends(t, h, 3, handler.Processed)
	msg := order("1", 2)
	err = h(handler.WithCause(t.Context(), &handler.Cause{Consumer: "shipping", Message: msg}), tx, msg)
	require.NoError(t, tx.Rollback(t.Context()))
	require.ErrorContains(t, err, "40001")
}

func TestPurgeVersions(t *testing.T) {
	t.Parallel()

	b := setupGuard(t)
	h := b.store.VersionGuard(dedup.GuardConfig{})(noteRun)
	for _, consumer := range []string{"shipping", "billing"} {
		for _, key := range []string{"1", "2", "3", "4"} {
			_, err := b.handle(t.Context(), h, consumer, order(key, 5), false)
			require.NoError(t, err)
		}
	}
	age := func(sql string) {
		_, err := b.Pool.Exec(t.Context(), `UPDATE key_versions SET updated_at = updated_at - interval '40 days' WHERE `+sql)
		require.NoError(t, err)
	}
	age(`key <> '1'`)
	held, err := b.Pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = held.Exec(t.Context(), `SELECT FROM key_versions WHERE key = '4' FOR UPDATE`)
	require.NoError(t, err)

	deleted, err := b.store.PurgeVersions(t.Context(), b.Pool, month, dedup.PurgeConfig{Consumer: "billing"})
	require.NoError(t, err)
	require.EqualValues(t, 2, deleted, "a handler has the third in hand")
	deleted, err = b.store.PurgeVersions(t.Context(), b.Pool, month, dedup.PurgeConfig{Batch: 1})
	require.NoError(t, err)
	require.EqualValues(t, 2, deleted)
	require.NoError(t, held.Rollback(t.Context()))
	deleted, err = b.store.PurgeVersions(t.Context(), b.Pool, month, dedup.PurgeConfig{})
	require.NoError(t, err)
	require.EqualValues(t, 2, deleted)

	b.sends(t, h, 4, handler.Superseded)
	outcome, err := b.handle(t.Context(), h, "shipping", order("2", 4), false)
	require.NoError(t, err)
	require.Equal(t, handler.Processed, outcome, "nobody remembers the entity")

	_, err = b.store.PurgeVersions(t.Context(), b.Pool, dedup.MinRetention-1, dedup.PurgeConfig{})
	require.ErrorContains(t, err, "it must be at least 24h0m0s")
}

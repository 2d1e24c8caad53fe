package outbox_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/schema"
)

// lines are what was logged.
type lines struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), text)
}

func (l *lines) all() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// purging runs a relay that looks often whether it is time to purge.
func (b *testBundle) purging(t *testing.T, pool *pgxpool.Pool, every time.Duration, cfg outbox.RelayConfig, log *lines) (stop func()) {
	t.Helper()
	cfg.Schema, cfg.Logger = b.Schema, slog.New(slog.NewTextHandler(log, nil))
	relay, err := outbox.NewRelay(pool, &recorder{}, cfg)
	require.NoError(t, err)
	outbox.PurgeEvery(relay, every, 20*time.Millisecond)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(log.all())
		}
	})
	done := make(chan error, 1)
	go func() { done <- relay.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-done:
			require.NoError(t, err)
		case <-time.After(deadline):
			t.Error("the relay does not end")
		}
	})
	t.Cleanup(stop)
	return stop
}

// turn is when the outbox was purged last, by somebody's turn.
func (b *testBundle) turn(t *testing.T) time.Time {
	t.Helper()
	return query[time.Time](t, b, `SELECT purging_at FROM semel.relay_leases WHERE lo = 0`)
}

// old is how many events a purge should delete.
func (b *testBundle) old(t *testing.T) int {
	t.Helper()
	return query[int](t, b, `SELECT count(*)::int FROM semel.outbox WHERE coalesce(published_at, discarded_at) < now() - interval '7 days'`)
}

// due makes it time to purge.
func (b *testBundle) due(t *testing.T) {
	t.Helper()
	b.exec(t, `UPDATE semel.relay_leases SET purging_at = clock_timestamp() - interval '7 h' WHERE lo = 0`)
}

// Relays purge what was published long ago, and nothing that is to be published
// yet. Of all of them one does, and one that starts again does not do it again.
func TestRelay_Purges(t *testing.T) {
	t.Parallel()

	b := setup(t)
	const old, quarantined = 200, 2
	b.exec(t, `INSERT INTO semel.outbox (id, aggregatetype, aggregateid, type, created_at, published_at)
		SELECT gen_random_uuid(), 'order', n, 'OrderPaid', at, at
		FROM generate_series(1, $1::int) AS n, (SELECT clock_timestamp() - interval '8 days' AS at) AS o`, old)
	b.exec(t, `INSERT INTO semel.outbox (id, aggregatetype, aggregateid, type, created_at, quarantined_at)
		SELECT gen_random_uuid(), 'held', n, 'OrderPaid', at, at
		FROM generate_series(1, $1::int) AS n, (SELECT clock_timestamp() - interval '8 days' AS at) AS o`, quarantined)
	b.exec(t, `INSERT INTO semel.outbox (id, aggregatetype, aggregateid, type, created_at, published_at)
		SELECT gen_random_uuid(), 'young', '1', 'OrderPaid', at, at FROM (SELECT clock_timestamp() - interval '6 days' AS at) AS o`)
	b.due(t)
	began := b.turn(t)
	log := &lines{}
	pools := []*pgxpool.Pool{b.NewPool(t, 6), b.NewPool(t, 6), b.NewPool(t, 6)}
	stops := []func(){}
	for _, pool := range pools {
		stops = append(stops, b.purging(t, pool, 6*time.Hour, outbox.RelayConfig{}, log))
	}
	b.write(t, order("new", 1))

	require.Eventually(t, func() bool { return log.count("old rows are purged") > 0 }, deadline, tick)
	b.awaitStates(t, "new", "published")
	require.Equal(t, map[string]int{"published": 2, "quarantined": quarantined}, b.counts(t))
	turn := b.turn(t)
	require.True(t, turn.After(began))
	require.Equal(t, 1, log.count("old rows are purged"), "one of them")
	require.Equal(t, 1, log.count("deleted=200"))
	for i, stop := range stops { // they start again
		stop()
		stops[i] = b.purging(t, pools[i], 6*time.Hour, outbox.RelayConfig{}, log)
	}
	b.write(t, order("new", 2))
	b.awaitStates(t, "new", "published published")
	for _, stop := range stops {
		stop()
	}
	require.Equal(t, turn, b.turn(t), "restarts purge nothing")
}

// A relay looks many times, and the database says when it is time again.
func TestRelay_PurgesAgain(t *testing.T) {
	t.Parallel()

	b := setup(t)
	log := &lines{}
	b.purging(t, b.NewPool(t, 6), 100*time.Millisecond, outbox.RelayConfig{}, log)
	for round := 1; round <= 3; round++ {
		b.fill(t, 10)
		require.Eventually(t, func() bool { return b.old(t) == 0 && log.count("old rows are purged") >= round }, deadline, tick)
	}
}

// A clock that was ahead when somebody purged, on a server that is not there any
// more, does not stop purges for ever.
func TestRelay_PurgesAfterAClockAhead(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.fill(t, 10)
	b.exec(t, `UPDATE semel.relay_leases SET purging_at = clock_timestamp() + interval '1 year' WHERE lo = 0`)
	b.purging(t, b.NewPool(t, 6), 6*time.Hour, outbox.RelayConfig{}, &lines{})

	require.Eventually(t, func() bool { return b.old(t) == 0 }, deadline, tick)
}

// What may not be purged is said once, and the relay goes on.
func TestRelay_MayNotPurge(t *testing.T) {
	t.Parallel()

	b := setup(t)
	pool := b.asPart(t, schema.Relay)
	log := &lines{}
	b.purging(t, pool, time.Millisecond, outbox.RelayConfig{}, log)
	b.write(t, order("1", 1))
	b.awaitPublished(t, 1) // it has started, with all rights
	b.exec(t, `REVOKE DELETE ON semel.outbox FROM `+pool.Config().ConnConfig.User)

	require.Eventually(t, func() bool { return log.count("old rows are not purged, this role may not") == 1 }, deadline, tick)
	for range 3 { // it goes on trying, and says no more
		turn := b.turn(t)
		require.Eventually(t, func() bool { return b.turn(t).After(turn) }, deadline, tick)
	}
	require.Equal(t, 1, log.count("may not"))
	b.fill(t, 10)
	b.exec(t, `GRANT DELETE ON semel.outbox TO `+pool.Config().ConnConfig.User)
	require.Eventually(t, func() bool { return log.count("old rows are purged") == 1 }, deadline, tick)
}

func TestRelay_KeepsForever(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.due(t)
	relay, err := outbox.NewRelay(b.Pool, &recorder{}, outbox.RelayConfig{Schema: b.Schema, Retention: outbox.KeepForever})
	require.NoError(t, err)
	outbox.PurgeEvery(relay, time.Millisecond, time.Millisecond)
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()

	outbox.Purges(ctx, relay)

	require.NoError(t, ctx.Err(), "there is no loop")
}

// Of many relays that ask at once one may purge.
func TestRelay_TakesTurns(t *testing.T) {
	t.Parallel()

	b := setup(t)
	relay, err := outbox.NewRelay(b.Pool, &recorder{}, outbox.RelayConfig{Schema: b.Schema})
	require.NoError(t, err)
	ask := func() (won int64) {
		var wins atomic.Int64
		var asking sync.WaitGroup
		for range 16 {
			asking.Go(func() {
				taken, err := outbox.TakePurgeTurn(t.Context(), relay, 6*time.Hour)
				if err != nil {
					t.Error(err)
				}
				if taken {
					wins.Add(1)
				}
			})
		}
		asking.Wait()
		return wins.Load()
	}

	require.Zero(t, ask(), "a new outbox has nothing old")
	b.due(t)
	require.EqualValues(t, 1, ask())
	require.Zero(t, ask())
	for range 2 { // whoever is still at it says so
		taken, err := outbox.TakePurgeTurn(t.Context(), relay, 0)
		require.NoError(t, err)
		require.True(t, taken)
	}
}

// Case O10: the archive of a relay is away for a while: nothing is deleted, it is said once, in the log and in Stats, and goes on by itself when the archive is back (seed documents)
func TestRelay_Archives(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.fill(t, 20)
	old, dir := b.old(t), filepath.Join(t.TempDir(), "not-mounted")
	log := &lines{}
	cfg := outbox.RelayConfig{Schema: b.Schema, Archive: outbox.DirectoryArchive(dir), Logger: slog.New(slog.NewTextHandler(log, nil))}
	relay, err := outbox.NewRelay(b.NewPool(t, 6), &recorder{}, cfg)
	require.NoError(t, err)
	outbox.PurgeEvery(relay, time.Millisecond, time.Millisecond)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); outbox.Purges(ctx, relay) }()

	require.Eventually(t, func() bool { return relay.Stats().PurgeError != nil }, deadline, tick)
	require.ErrorContains(t, relay.Stats().PurgeError, dir)
	for range 3 { // it goes on trying, and says no more
		turn := b.turn(t)
		require.Eventually(t, func() bool { return b.turn(t).After(turn) }, deadline, tick)
	}
	require.Equal(t, 1, log.count("old rows could not be purged"))
	require.Equal(t, old, b.old(t))

	require.NoError(t, os.Mkdir(dir, 0o750))

	require.Eventually(t, func() bool { return relay.Stats().Purged == int64(old) && relay.Stats().PurgeError == nil }, deadline, tick)
	cancel()
	<-done
	require.Zero(t, b.old(t))
	_, ids := archived(t, dir)
	require.Len(t, ids, old)
}

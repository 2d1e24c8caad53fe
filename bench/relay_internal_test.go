package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/bench/byhand"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/internal/services"
)

// A slow start and a slow end are not measured.
func TestSteady(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		count := func() int64 {
			switch s := time.Since(began).Seconds(); {
			case s < 20: // 5 a second
				return int64(5 * s)
			case s < 22: // 400 a second
				return 100 + int64(400*(s-20))
			default:
				return min(1000, 900+int64(5*(s-22)))
			}
		}

		rate, err := steady(t.Context(), 1000, count)

		require.NoError(t, err)
		require.InDelta(t, 400, rate, 2)
	})
}

func TestSteady_Fails(t *testing.T) {
	t.Parallel()

	errRelay := errors.New("the relay has failed")
	tests := []struct {
		name  string
		count func(calls int) int64
		fail  bool
		want  string
	}{
		{name: "StandsStill", count: func(calls int) int64 { return min(500, int64(calls)) }, want: "500 of 1000 events were published, and for 1m0s no more"},
		{name: "NeverBegins", count: func(int) int64 { return 0 }, want: "0 of 1000"},
		{name: "TooFew", count: func(int) int64 { return 1000 }, want: "too few"},
		{name: "RelayFails", count: func(calls int) int64 { return int64(calls) }, fail: true, want: errRelay.Error()},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				calls := 0
				_, err := steady(ctx, 1000, func() int64 {
					if calls++; tt.fail && calls == 100 {
						cancel(errRelay)
					}
					return tt.count(calls)
				})

				require.ErrorContains(t, err, tt.want)
			})
		})
	}
}

func TestStopwatch_P99(t *testing.T) {
	t.Parallel()

	var w stopwatch
	_, err := w.p99()
	require.ErrorContains(t, err, "nothing was timed")
	for i := 1000; i > 0; i-- {
		w.add(time.Duration(i) * time.Millisecond)
	}

	p99, err := w.p99()

	require.NoError(t, err)
	require.InDelta(t, 990, p99, 0)
}

func TestBestBatch(t *testing.T) {
	t.Parallel()

	rates := map[int]float64{100: 10, 200: 30, 500: 20, 1000: 5}
	best, tried, err := bestBatch(t.Context(), func(batch int) func(context.Context) (float64, error) {
		return func(context.Context) (float64, error) { return rates[batch], nil }
	})

	require.NoError(t, err)
	require.Equal(t, 200, best)
	require.Equal(t, []float64{10, 30, 20, 5}, tried)
}

// recorder is a publisher that keeps what it is given.
type recorder struct {
	mu  sync.Mutex
	ids []string
}

// Publish implements [handler.Publisher].
func (r *recorder) Publish(_ context.Context, msgs []*handler.Message) []error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, msg := range msgs {
		r.ids = append(r.ids, msg.ID)
	}
	return make([]error, len(msgs))
}

func TestGated(t *testing.T) {
	t.Parallel()

	require.True(t, newGated(null{}, nil).KeepsOrder())
	require.False(t, newGated(&recorder{}, nil).KeepsOrder())
	synctest.Test(t, func(t *testing.T) {
		gate, r := make(chan struct{}), &recorder{}
		g := newGated(r, gate)
		ended := false
		go func() {
			g.Publish(t.Context(), []*handler.Message{{ID: "1"}})
			ended = true
		}()
		synctest.Wait()
		require.False(t, ended)
		require.Empty(t, r.ids)

		close(gate)
		synctest.Wait()
		require.True(t, ended)
		require.Equal(t, []string{"1"}, r.ids)
	})
}

// The pace is kept also when things take long.
func TestPaced(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		n, began := 0, time.Now()
		err := paced(t.Context(), time.Second, func(context.Context, *handler.Message) error {
			time.Sleep(time.Minute) // of the bubble
			mu.Lock()
			defer mu.Unlock()
			n++
			return nil
		})

		require.NoError(t, err)
		require.Equal(t, 500, n)
		require.Equal(t, time.Minute+time.Second, time.Since(began))
	})
}

// An event is timed from its commit to its confirmation; p99 waits for the last.
func TestWatch(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		w := newWatch(null{})
		w.expect("1")
		w.committed("1")
		w.expect("2") // its writer hears late of its commit
		go func() {
			time.Sleep(20 * time.Millisecond) // of the bubble
			w.Publish(t.Context(), []*handler.Message{{ID: "1"}})
			w.Publish(t.Context(), []*handler.Message{{ID: "2"}})
			w.committed("2")
		}()

		p99, err := w.p99(t.Context())

		require.NoError(t, err)
		require.InDelta(t, 20, p99, 0)
		require.Empty(t, w.commits)
	})
}

// Workers by hand publish each event of the backlog once, as ours does.
func TestBacklog_ByHand(t *testing.T) {
	services.Postgres(t)
	t.Parallel()

	ctx := t.Context()
	db, err := newDatabase(ctx, instances)
	require.NoError(t, err)
	t.Cleanup(db.drop)
	msgs := newMessages(250)
	l, err := db.newBacklog(ctx, "backlog", len(msgs), oneByOne(msgs))
	require.NoError(t, err)
	require.NoError(t, l.inTableByHand(ctx))
	r := &recorder{}
	hand := &byhand.Relay{Pool: db.pool, Batch: 100, Publisher: r}

	var got []int
	for range 4 {
		n, err := hand.Next(ctx)
		require.NoError(t, err)
		got = append(got, n)
	}

	require.Equal(t, []int{100, 100, 50, 0}, got)
	var want []string
	for _, msg := range msgs {
		want = append(want, msg.ID)
	}
	require.ElementsMatch(t, want, r.ids)
}

// A purge goes on as far as it is told, and no further.
func TestPausedPurge(t *testing.T) {
	services.Postgres(t)
	t.Parallel()

	ctx := t.Context()
	db, err := newDatabase(ctx, instances)
	require.NoError(t, err)
	t.Cleanup(db.drop)
	const n = 25_000
	require.NoError(t, db.writeMany(ctx, n, "now() - interval '1 day'"))
	p := db.startPurge(ctx)
	defer p.end()

	for _, goal := range []int64{1, n} {
		require.NoError(t, p.resume(goal))
		require.Eventually(t, func() bool { return p.deleted.Load() >= goal }, time.Minute, time.Millisecond)
		var left int64
		require.NoError(t, db.pool.QueryRow(ctx, `SELECT count(*) FROM outbox`).Scan(&left))
		require.Equal(t, n-p.deleted.Load(), left)
	}
	require.EqualValues(t, n, p.deleted.Load())
}

// A short run of both kinds prints its lines.
func TestRun_Outbox(t *testing.T) {
	services.Postgres(t)
	t.Parallel()
	var stdout, stderr bytes.Buffer

	err := run(t.Context(), []string{"-run", `^outbox\.write|^relay\.db\.vs_skip_locked$`, "-rounds", "1", "-for", "1s", "-events", "20000"}, &stdout, &stderr)

	require.NoError(t, err, stderr.String())
	require.Regexp(t, `(?m)^BENCH outbox\.write\.vs_insert [0-9.]+ \(target >= 0\.9: .*\[semel [0-9]+/s, by hand [0-9]+/s\]`, stdout.String())
	require.Regexp(t, `(?m)^BENCH relay\.db\.vs_skip_locked [0-9.]+ \(target >= 1\.1: .*\[relays [0-9]+/s, by hand [0-9]+/s\]; 4 of each, batch 100, 20000 events`, stdout.String())
	require.Equal(t, 3, strings.Count(stdout.String(), "\n"), stdout.String())
}

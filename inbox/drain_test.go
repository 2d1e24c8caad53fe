package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
)

// Drain, first stage: what runs may finish, what was not started goes back.
func TestRun_DrainLetsRunningFinish(t *testing.T) {
	t.Parallel()

	b := setup(t)
	h := &blocking{release: make(chan struct{})}
	in := b.inbox(t, h.handle, inbox.Config{Workers: 2})
	src := newScripted()
	r := start(t, in, src)
	for i := range 10 {
		msg := message(fmt.Sprintf("evt_%d", i))
		msg.Key = []byte{byte(i % 5)}
		require.NoError(t, r.sink.Deliver(t.Context(), src.delivery(msg, nil)))
	}
	require.Eventually(t, func() bool { return h.running.Load() == 2 }, deadline, tick)

	r.stop()
	// evt_5 and evt_6 wait behind the two that run, and go back after them.
	require.Eventually(t, func() bool { return in.Stats().Waiting == 2 }, deadline, tick)
	require.ErrorIs(t, r.sink.Deliver(t.Context(), &handler.Delivery{Message: message("late")}), inbox.ErrDraining)
	close(h.release)
	require.NoError(t, r.wait(t))

	require.Equal(t, "settled", src.answer("evt_0"))
	require.Equal(t, "settled", src.answer("evt_1"))
	for i := 2; i < 10; i++ {
		require.Equal(t, inbox.ErrDraining.Error(), src.answer(fmt.Sprintf("evt_%d", i)))
	}
	require.Equal(t, 2, b.count(t, `SELECT count(*) FROM effects`))
	require.Zero(t, in.Stats().FailedAttempts)
}

// Drain, second stage: after the drain time handlers are cancelled, which is no
// failed attempt. Third: one that ignores that is left behind.
func TestRun_DrainCancelsAndAbandons(t *testing.T) {
	t.Parallel()

	b := setup(t)
	cause := make(chan error, 2)
	stuck := make(chan struct{})
	var running atomic.Int32
	in := b.inbox(t, func(ctx context.Context, _ pgx.Tx, msg *handler.Message) error {
		running.Add(1)
		<-ctx.Done()
		if msg.ID == "stuck" {
			<-stuck
		}
		cause <- context.Cause(ctx)
		return ctx.Err()
	}, inbox.Config{DrainTimeout: 20 * time.Millisecond, WatchdogGrace: 20 * time.Millisecond})
	src := newScripted()
	r := start(t, in, src)
	require.NoError(t, r.sink.Deliver(t.Context(), src.delivery(message("polite"), nil)))
	require.NoError(t, r.sink.Deliver(t.Context(), src.delivery(message("stuck"), nil)))
	require.Eventually(t, func() bool { return running.Load() == 2 }, deadline, tick)

	r.stop()
	require.NoError(t, r.wait(t))

	require.ErrorIs(t, <-cause, inbox.ErrDraining)
	require.Equal(t, inbox.ErrDraining.Error(), src.answer("polite"))
	require.Equal(t, inbox.ErrDraining.Error(), src.answer("stuck"))
	require.Equal(t, 1, in.Stats().Stuck)
	require.Zero(t, in.Stats().FailedAttempts, "shutdown is not a failure")
	require.Empty(t, b.letters(t))
	close(stuck)
	require.Eventually(t, func() bool { return in.Stats().Stuck == 0 }, deadline, tick)
}

// A message that waits for its next attempt has the drain time, and goes back
// at its end.
func TestRun_DrainDuringPause(t *testing.T) {
	t.Parallel()

	b := setup(t)
	in := b.inbox(t, func(context.Context, pgx.Tx, *handler.Message) error {
		return handler.RetryAfter(time.Hour, errors.New("later"))
	}, inbox.Config{QuickDelay: time.Hour, QuickMaxDelay: time.Hour, DrainTimeout: 30 * time.Millisecond})
	src := newScripted()
	r := start(t, in, src)
	require.NoError(t, r.sink.Deliver(t.Context(), src.delivery(message("evt_1"), nil)))
	require.Eventually(t, func() bool { return in.Stats().FailedAttempts == 1 && in.Stats().Waiting == 1 }, deadline, tick)

	r.stop()

	require.NoError(t, r.wait(t))
	require.Equal(t, inbox.ErrDraining.Error(), src.answer("evt_1"))
}

// Case K6: a message that waited behind its key at the end of a process left a
// hole before finished ones, and Kafka, which knows only a prefix, delivered
// all of them again.
func TestRun_DrainLeavesNoHoles(t *testing.T) {
	t.Parallel()

	b := setup(t)
	release := make(chan struct{})
	in := b.inbox(t, func(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
		if msg.ID == "a1" {
			<-release
		}
		return effect(ctx, tx, msg)
	}, inbox.Config{Workers: 2})
	src := newScripted()
	r := start(t, in, src)
	deliver := func(id, key string) {
		msg := message(id)
		msg.Key = []byte(key)
		require.NoError(t, r.sink.Deliver(t.Context(), src.delivery(msg, nil)))
	}
	deliver("a1", "a")
	deliver("a2", "a") // waits behind a1
	deliver("b1", "b")
	require.Eventually(t, func() bool { return src.answer("b1") == "settled" }, deadline, tick)
	deliver("a3", "a") // waits too, and nothing after it was started

	r.stop()
	close(release)
	require.NoError(t, r.wait(t))

	require.Equal(t, inbox.ErrDraining.Error(), src.answer("a3"))

	require.Equal(t, "settled", src.answer("a1"))
	require.Equal(t, "settled", src.answer("a2"), "it came before b1, which is settled")
}

// A drain does not wait for a database that is away.
func TestRun_DrainDuringOutage(t *testing.T) {
	t.Parallel()

	b := setup(t)
	proxy, pool := b.through(t, "")
	in := b.inboxOn(t, pool, "shipping", effect, inbox.Config{Workers: 2})
	src := newScripted()
	r := start(t, in, src)
	require.NoError(t, r.sink.Deliver(t.Context(), src.delivery(message("evt_0"), nil)))
	require.Eventually(t, func() bool { return src.answer("evt_0") == "settled" }, deadline, tick)
	proxy.Pause()
	proxy.Refuse(true)
	proxy.Cut()
	proxy.Resume()
	for i := 1; i < 20; i++ {
		require.NoError(t, r.sink.Deliver(t.Context(), src.delivery(message(fmt.Sprintf("evt_%d", i)), nil)))
	}
	require.Eventually(t, func() bool { return in.Stats().Paused }, deadline, tick)

	began := time.Now()
	r.stop()
	require.NoError(t, r.wait(t))

	require.Less(t, time.Since(began), 15*time.Second, "half of the drain time")
	for i := 1; i < 20; i++ {
		require.Equal(t, inbox.ErrDraining.Error(), src.answer(fmt.Sprintf("evt_%d", i)))
	}
	require.Zero(t, in.Stats().FailedAttempts)
}

// A drain in an outage left the source paused, and the next Run of it took
// nothing, without a word.
func TestRun_DrainWhilePaused(t *testing.T) {
	t.Parallel()

	b := setup(t)
	proxy, pool := b.through(t, "")
	in := b.inboxOn(t, pool, "shipping", effect, inbox.Config{StatementTimeout: 2 * time.Second})
	src := &pausing{scripted: newScripted()}
	r := startSource(t, in, src, src.scripted)
	proxy.Refuse(true)
	proxy.Cut()
	require.NoError(t, r.sink.Deliver(t.Context(), src.delivery(message("evt_1"), nil)))
	require.Eventually(t, src.paused.Load, deadline, tick)

	r.stop()
	require.NoError(t, r.wait(t))

	require.False(t, src.paused.Load())
}

type pausing struct {
	*scripted
	paused atomic.Bool
}

func (p *pausing) Pause()  { p.paused.Store(true) }
func (p *pausing) Resume() { p.paused.Store(false) }

// A rebalance during a drain: what was to be handled yet, because it came
// before a started message, goes back at once and not when a worker is free.
func TestRun_RevokedWhileDraining(t *testing.T) {
	t.Parallel()

	b := setup(t)
	h := &blocking{release: make(chan struct{})}
	in := b.inbox(t, h.handle, inbox.Config{Workers: 2})
	src := newScripted()
	r := start(t, in, src)
	revoked := make(chan struct{})
	deliver := func(id, key string, revoked <-chan struct{}) {
		msg := message(id)
		msg.Key = []byte(key)
		require.NoError(t, r.sink.Deliver(t.Context(), src.delivery(msg, revoked)))
	}
	deliver("a1", "a", nil)
	deliver("a2", "a", revoked) // waits behind a1
	deliver("b1", "b", nil)
	require.Eventually(t, func() bool { return h.running.Load() == 2 }, deadline, tick)

	r.stop()
	require.Eventually(t, func() bool { return len(b.events.kinds(inbox.Draining)) == 1 }, deadline, tick)
	close(revoked)
	require.Eventually(t, func() bool { return src.answer("a2") == inbox.ErrRevoked.Error() }, deadline, tick)

	close(h.release)
	require.NoError(t, r.wait(t))
	require.Equal(t, "settled", src.answer("a1"))
	require.Equal(t, "settled", src.answer("b1"))
}

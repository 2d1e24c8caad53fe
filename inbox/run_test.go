package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
	"github.com/semel-go/semel/transports/memory"
)

// scripted is a source under the test's control. It follows the contract: Run
// returns when every delivery was answered.
type scripted struct {
	sink chan handler.Sink
	out  sync.WaitGroup

	mu       sync.Mutex
	answers  map[string]string // id → settled or the error it was returned with
	answered map[string]int
}

func newScripted() *scripted {
	return &scripted{sink: make(chan handler.Sink, 1), answers: map[string]string{}, answered: map[string]int{}}
}

func (s *scripted) Run(ctx context.Context, sink handler.Sink) error {
	s.sink <- sink
	<-ctx.Done()
	s.out.Wait()
	return nil
}

func (s *scripted) delivery(msg *handler.Message, revoked <-chan struct{}) *handler.Delivery {
	s.out.Add(1)
	answer := func(text string) {
		s.mu.Lock()
		s.answers[msg.ID] = text
		s.answered[msg.ID]++
		s.mu.Unlock()
		s.out.Done()
	}
	return &handler.Delivery{
		Message:  msg,
		Settled:  func() { answer("settled") },
		Returned: func(err error) { answer(err.Error()) },
		Revoked:  revoked,
	}
}

func (s *scripted) answer(id string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.answered[id]; n > 1 {
		return fmt.Sprintf("answered %d times", n)
	}
	return s.answers[id]
}

// started is a running Run.
type started struct {
	sink handler.Sink
	stop context.CancelFunc
	done chan error
}

func start(t *testing.T, in *inbox.Inbox, s *scripted) *started {
	t.Helper()
	return startSource(t, in, s, s)
}

// startSource runs a source that is made of s.
func startSource(t *testing.T, in *inbox.Inbox, src handler.Source, s *scripted) *started {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r := &started{stop: cancel, done: make(chan error, 1)}
	go func() { r.done <- in.Run(ctx, src) }()
	select {
	case r.sink = <-s.sink:
	case err := <-r.done:
		t.Fatalf("Run ended at once: %v", err)
	}
	t.Cleanup(cancel)
	return r
}

func (r *started) wait(t *testing.T) error {
	t.Helper()
	select {
	case err := <-r.done:
		return err
	case <-time.After(deadline):
		t.Fatal("Run did not return")
		return nil
	}
}

// blocking is a handler whose runs the test lets go.
type blocking struct {
	running atomic.Int32
	release chan struct{}
}

func (h *blocking) handle(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
	h.running.Add(1)
	select {
	case <-h.release:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return effect(context.WithoutCancel(ctx), tx, msg)
}

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

// A source that takes deliveries back gets those back at once that were not
// started; those that run are left to finish, and others are not disturbed.
func TestRun_Revoked(t *testing.T) {
	t.Parallel()

	b := setup(t)
	h := &blocking{release: make(chan struct{})}
	in := b.inbox(t, h.handle, inbox.Config{Workers: 1})
	src := newScripted()
	r := start(t, in, src)
	revoked := make(chan struct{})
	require.NoError(t, r.sink.Deliver(t.Context(), src.delivery(message("running"), revoked)))
	require.Eventually(t, func() bool { return h.running.Load() == 1 }, deadline, tick)
	require.NoError(t, r.sink.Deliver(t.Context(), src.delivery(message("waiting"), revoked)))
	require.NoError(t, r.sink.Deliver(t.Context(), src.delivery(message("other"), nil)))

	close(revoked)
	require.Eventually(t, func() bool { return src.answer("waiting") == inbox.ErrRevoked.Error() }, deadline, tick)
	require.NoError(t, r.sink.Deliver(t.Context(), src.delivery(message("late"), revoked)))
	require.Eventually(t, func() bool { return src.answer("late") == inbox.ErrRevoked.Error() }, deadline, tick)
	close(h.release)
	require.Eventually(t, func() bool { return src.answer("other") == "settled" }, deadline, tick)
	require.Equal(t, "settled", src.answer("running"))
	r.stop()
	require.NoError(t, r.wait(t))
}

// Deliver blocks while the engine is full, by messages and by bytes; one
// message is let in however large it is.
func TestRun_Full(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name string
		cfg  inbox.Config
	}{
		{name: "Messages", cfg: inbox.Config{MaxInFlight: 2, Workers: 1}},
		{name: "Bytes", cfg: inbox.Config{MaxInFlightBytes: 16, Workers: 1}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			b := setup(t)
			h := &blocking{release: make(chan struct{})}
			in := b.inbox(t, h.handle, tt.cfg)
			src := newScripted()
			r := start(t, in, src)
			for _, id := range []string{"evt_1", "evt_2"} { // 8 bytes each
				require.NoError(t, r.sink.Deliver(t.Context(), src.delivery(message(id), nil)))
			}
			ctx, cancel := context.WithCancel(t.Context())
			blocked := make(chan error, 1)
			go func() { blocked <- r.sink.Deliver(ctx, &handler.Delivery{Message: message("evt_3")}) }()
			select {
			case err := <-blocked:
				t.Fatalf("Deliver did not block: %v", err)
			case <-time.After(50 * time.Millisecond):
			}
			cancel()
			require.ErrorIs(t, <-blocked, context.Canceled, "not taken")

			go func() { blocked <- r.sink.Deliver(t.Context(), src.delivery(message("evt_4"), nil)) }()
			close(h.release)
			require.NoError(t, <-blocked, "there is room again")
			require.Eventually(t, func() bool { return src.answer("evt_4") == "settled" }, deadline, tick)
			r.stop()
			require.NoError(t, r.wait(t))
		})
	}
}

// A source that gives up takes nothing with it: what was taken is answered,
// and its error is returned.
func TestRun_SourceFails(t *testing.T) {
	t.Parallel()

	b := setup(t)
	in := b.inbox(t, effect, inbox.Config{})
	broken := errors.New("topic is forbidden")
	src := newScripted()
	err := in.Run(t.Context(), sourceFunc(func(ctx context.Context, sink handler.Sink) error {
		if err := sink.Deliver(ctx, src.delivery(message("evt_1"), nil)); err != nil {
			return err
		}
		return broken
	}))

	require.ErrorIs(t, err, broken)
	require.NotEmpty(t, src.answer("evt_1"))
}

type sourceFunc func(ctx context.Context, sink handler.Sink) error

func (f sourceFunc) Run(ctx context.Context, sink handler.Sink) error { return f(ctx, sink) }

// Order per key holds through a whole source, with failures in between.
func TestRun_OrderPerKey(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.exec(t, `CREATE TABLE log (seq bigserial, key text, n int)`)
	var calls atomic.Int64
	in := b.inbox(t, func(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
		if calls.Add(1)%7 == 0 {
			return errors.New("now and then")
		}
		_, err := tx.Exec(ctx, `INSERT INTO log (key, n) VALUES ($1, $2)`, string(msg.Key), msg.Version)
		return err
	}, inbox.Config{QuickAttempts: 50})
	queue := memory.NewQueue("payments")
	const keys, each = 10, 30
	for n := 1; n <= each; n++ {
		for k := range keys {
			require.NoError(t, queue.Publish(t.Context(), []*handler.Message{{
				ID: fmt.Sprintf("%d-%d", k, n), Key: []byte(fmt.Sprint("k", k)), Version: int64(n),
			}})[0])
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- in.Run(ctx, memory.NewSource(queue)) }()
	require.NoError(t, queue.Wait(t.Context()))
	cancel()
	require.NoError(t, <-done)

	require.Equal(t, keys*each, b.count(t, `SELECT count(*) FROM log`))
	require.Zero(t, b.count(t, `SELECT count(*) FROM (SELECT n, row_number() OVER (PARTITION BY key ORDER BY seq) AS want FROM log) x WHERE n <> want`))
}

// A message is read only, but a handler that drops a payload it has decoded
// must not use up the room for others: it was given back as what it left.
func TestRun_PayloadDroppedByHandler(t *testing.T) {
	t.Parallel()

	b := setup(t)
	in := b.inbox(t, func(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
		msg.Payload = nil
		return effect(ctx, tx, msg)
	}, inbox.Config{MaxInFlightBytes: 16})
	src := newScripted()
	r := start(t, in, src)
	for i := range 4 { // 8 bytes each
		require.NoError(t, r.sink.Deliver(t.Context(), src.delivery(message(fmt.Sprint("evt_", i)), nil)))
	}
	require.Eventually(t, func() bool { return in.Stats().Processed == 4 && in.Stats().Running == 0 }, deadline, tick)

	lock, err := b.Pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = lock.Exec(t.Context(), `LOCK TABLE effects`)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	for _, id := range []string{"evt_4", "evt_5"} {
		require.NoError(t, r.sink.Deliver(ctx, src.delivery(message(id), nil)), "there is room for two")
	}
	require.NoError(t, lock.Rollback(t.Context()))
	r.stop()
	require.NoError(t, r.wait(t))
}

// A delivery that was taken while its assignment was being revoked was given
// back only when a worker was free, which during an outage is when that ends:
// the source waited for it.
func TestRun_RevokedWhileItIsTaken(t *testing.T) {
	t.Parallel()

	b := setup(t)
	h := &blocking{release: make(chan struct{})}
	in := b.inbox(t, h.handle, inbox.Config{Workers: 1})
	src := newScripted()
	r := start(t, in, src)
	require.NoError(t, r.sink.Deliver(t.Context(), src.delivery(message("running"), nil)))
	require.Eventually(t, func() bool { return h.running.Load() == 1 }, deadline, tick)

	revoked := make(chan struct{})
	first := src.delivery(message("first"), revoked)
	returned, goingBack, goOn := first.Returned, make(chan struct{}), make(chan struct{})
	first.Returned = func(err error) {
		close(goingBack)
		<-goOn
		returned(err)
	}
	require.NoError(t, r.sink.Deliver(t.Context(), first))
	close(revoked)
	<-goingBack
	require.NoError(t, r.sink.Deliver(t.Context(), src.delivery(message("second"), revoked)))
	close(goOn)
	require.Eventually(t, func() bool { return src.answer("second") == inbox.ErrRevoked.Error() }, deadline, tick)

	close(h.release)
	r.stop()
	require.NoError(t, r.wait(t))
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

// Given back in an outage, the followers of a key went before the message that
// had been started: a quorum queue of RabbitMQ delivers in the order in which
// it gets them back, and each outage moved the first of a key behind the rest.
func TestRun_GoesBackInOrder(t *testing.T) {
	t.Parallel()

	for _, ends := range []string{"Revoked", "Drained"} {
		t.Run(ends, func(t *testing.T) {
			t.Parallel()

			b := setup(t)
			proxy, pool := b.through(t, "")
			in := b.inboxOn(t, pool, "shipping", effect, inbox.Config{StatementTimeout: 2 * time.Second})
			src := newScripted()
			r := start(t, in, src)
			proxy.Refuse(true)
			proxy.Cut()
			revoked := make(chan struct{})
			var mu sync.Mutex
			var order []string
			var want []string
			for i := range 50 {
				msg := message(fmt.Sprintf("evt_%d", i))
				msg.Key = []byte("k")
				d := src.delivery(msg, revoked)
				returned := d.Returned
				d.Returned = func(err error) {
					mu.Lock()
					order = append(order, msg.ID)
					mu.Unlock()
					returned(err)
				}
				want = append(want, msg.ID)
				require.NoError(t, r.sink.Deliver(t.Context(), d))
			}
			require.Eventually(t, func() bool { return in.Stats().Paused && in.Stats().Running == 0 }, deadline, tick)

			if ends == "Revoked" {
				close(revoked)
				src.out.Wait()
			}
			r.stop()
			require.NoError(t, r.wait(t))

			require.Equal(t, want, order)
		})
	}
}

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

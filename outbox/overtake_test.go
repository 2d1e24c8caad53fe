package outbox_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/outbox"
)

// Case O1: the transaction that commits late is of an aggregate that goes on at
// once. Its second event stands behind what the relay has read, its first one
// before it: the second must not be published first.
func TestRelay_LateCommitKeepsOrder(t *testing.T) {
	t.Parallel()

	b := setup(t)
	p := &recorder{ordered: true}
	cfg := quick()
	cfg.Poll = time.Millisecond
	b.relay(t, p, cfg)
	const rounds = 20
	for i := range rounds {
		late := b.begin(t)
		require.NoError(t, outbox.Lock(t.Context(), late, "order", "late"))
		require.NoError(t, b.writer.Write(t.Context(), late, order("late", int64(2*i+1))))
		b.write(t, order("other", int64(i+1)))
		b.awaitPublished(t, 3*i+1)

		require.NoError(t, late.Commit(t.Context()))
		b.write(t, order("late", int64(2*i+2)))
		b.awaitPublished(t, 3*i+3)
	}

	requireOrder(t, p.messages(), 3*rounds)
}

// Part of a batch finds its part of the broker away while later events of the
// same aggregate wait in the lane already. They must not go out before it when
// it may go on.
func TestRelay_OutageOfAPartKeepsOrder(t *testing.T) {
	t.Parallel()

	b := setup(t)
	const batch = 10
	var first atomic.Bool
	first.Store(true)
	p := &recorder{ordered: true, answer: func(ctx context.Context, msg *handler.Message) error {
		switch {
		case string(msg.Key) == "far" && first.CompareAndSwap(true, false):
			takes(ctx, 300*time.Millisecond) // until all is read
			return handler.Unavailable(errNo)
		case string(msg.Key) == "slow":
			takes(ctx, 700*time.Millisecond) // until the aggregate may go on
		}
		return nil
	}}
	events := []outbox.Event{order("far", 1)} // the first batch
	for i := range batch - 1 {
		events = append(events, order(fmt.Sprint("a", i), 1))
	}
	events = append(events, order("slow", 1)) // the second
	for i := range batch - 1 {
		events = append(events, order(fmt.Sprint("b", i), 1))
	}
	events = append(events, order("far", 2)) // the third
	b.write(t, events...)
	cfg := quick()
	cfg.Batch, cfg.AttemptTimeout = batch, 5*time.Second
	b.relay(t, p, cfg)

	b.awaitPublished(t, len(events))
	requireOrder(t, p.messages(), len(events))
}

// An event that has failed before finds its part of the broker away. Its
// aggregate still waits for it.
func TestRelay_RetryFindsAPartAway(t *testing.T) {
	t.Parallel()

	b := setup(t)
	var attempts atomic.Int64
	p := &recorder{ordered: true}
	p.answer = func(ctx context.Context, msg *handler.Message) error {
		if string(msg.Key) != "bad" || msg.Version != 1 {
			takes(ctx, time.Millisecond) // so that others are in its batch
			return nil
		}
		switch n := attempts.Add(1); {
		case n == 1:
			return errNo
		case n < 20:
			return handler.Unavailable(errNo)
		default:
			return nil
		}
	}
	b.write(t, order("bad", 1), order("bad", 2))
	done := make(chan struct{})
	const others = 400
	go func() { // there is always something that gets through
		defer close(done)
		for v := range int64(others) {
			b.write(t, order("good", v+1))
		}
	}()
	b.relay(t, p, quick())
	<-done

	require.Eventually(t, func() bool { return attempts.Load() >= 20 || len(b.sentOf(p, "bad")) > 0 }, deadline, tick)
	b.awaitPublished(t, others+2)
	require.Equal(t, []int64{1, 2}, b.sentOf(p, "bad"))
}

// takes is how long a broker takes for an answer.
func takes(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// sentOf is which versions of an aggregate were confirmed, in order.
func (b *testBundle) sentOf(p *recorder, aggregate string) (versions []int64) {
	for _, m := range p.messages() {
		if string(m.Key) == aggregate {
			versions = append(versions, m.Version)
		}
	}
	return versions
}

// By policy an aggregate goes on without an event that is refused for good.
// What waits in the lane behind it goes on in order.
func TestRelay_ContinueKeepsOrder(t *testing.T) {
	t.Parallel()

	b := setup(t)
	p := &recorder{ordered: true, answer: func(ctx context.Context, msg *handler.Message) error {
		switch {
		case string(msg.Key) == "bad" && msg.Version == 1:
			takes(ctx, 300*time.Millisecond) // until all is read
			return handler.Permanent(errNo)
		case string(msg.Key) == "slow":
			takes(ctx, 300*time.Millisecond) // until that is noted
		}
		return nil
	}}
	b.write(t, order("bad", 1), order("a", 1), // batches of two
		order("bad", 2), order("slow", 1),
		order("b", 1), order("slow", 2),
		order("bad", 3), order("c", 1))
	cfg := quick()
	cfg.Batch, cfg.Quarantine, cfg.AttemptTimeout = 2, outbox.Continue, 5*time.Second
	b.relay(t, p, cfg)

	b.awaitPublished(t, 7)
	require.Equal(t, []int64{2, 3}, b.sentOf(p, "bad"))
}

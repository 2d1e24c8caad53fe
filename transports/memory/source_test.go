package memory_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/transports/memory"
	"github.com/semel-go/semel/transports/transporttest"
)

func TestSource_RunsOnceAtATime(t *testing.T) {
	t.Parallel()

	queue := memory.NewQueue("payments")
	queue.Publish(t.Context(), []*handler.Message{{ID: "evt_1"}})
	source := memory.NewSource(queue)
	sink := transporttest.NewSink(transporttest.SinkConfig{})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- source.Run(ctx, sink) }()
	d := sink.Next(t) // it runs

	require.EqualError(t, source.Run(t.Context(), sink), `run a source of queue "payments": it runs already: make one source for each Run`)
	cancel()
	d.Settled()
	require.NoError(t, <-done)
	require.NoError(t, source.Run(ctx, sink), "it may run again")
}

func TestSource_AbortActsAsDeath(t *testing.T) {
	t.Parallel()

	queue := memory.NewQueue("payments")
	queue.Publish(t.Context(), []*handler.Message{{ID: "evt_1"}, {ID: "evt_2"}})
	source := memory.NewSource(queue)
	source.Abort() // nothing runs: no effect
	sink := transporttest.NewSink(transporttest.SinkConfig{})
	done := make(chan error, 1)
	go func() { done <- source.Run(t.Context(), sink) }()
	d := sink.Next(t)
	sink.Next(t)

	source.Abort()
	source.Abort()

	require.ErrorIs(t, <-done, memory.ErrAborted)
	<-d.Revoked
	d.Settled() // too late: nobody hears it
	again := settleAll(t, queue)
	require.Len(t, again, 2)
	require.True(t, again[0].Origin.Redelivered)
}

func TestSource_KeepsTheOrderOfWhatComesAgain(t *testing.T) {
	t.Parallel()

	queue := memory.NewQueue("payments")
	queue.Publish(t.Context(), []*handler.Message{{ID: "evt_1"}, {ID: "evt_2"}, {ID: "evt_3"}})
	sink := transporttest.NewSink(transporttest.SinkConfig{Limit: 2})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- memory.NewSource(queue).Run(ctx, sink) }()
	first, second := sink.Next(t), sink.Next(t)
	sink.AwaitBlocked(t) // with the third
	cancel()
	second.Returned(errors.New("the engine drains"))
	first.Returned(errors.New("the engine drains"))
	require.NoError(t, <-done)

	var order []string
	for _, msg := range settleAll(t, queue) {
		order = append(order, msg.ID)
	}

	require.Equal(t, []string{"evt_1", "evt_2", "evt_3"}, order)
}

func TestSource_OffersARefusedMessageAgain(t *testing.T) {
	t.Parallel()

	queue := memory.NewQueue("payments")
	queue.Publish(t.Context(), []*handler.Message{{ID: "evt_1"}})
	ctx, cancel := context.WithCancel(t.Context())
	refusals := 0

	err := memory.NewSource(queue).Run(ctx, sinkFunc(func(_ context.Context, d *handler.Delivery) error {
		if refusals < 3 {
			refusals++
			return transporttest.ErrRefused
		}
		require.False(t, d.Message.Origin.Redelivered, "it was never taken")
		d.Settled()
		cancel()
		return nil
	}))

	require.NoError(t, err)
	require.NoError(t, queue.Wait(t.Context()))
}

func TestSource_TakesTurns(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		queue := memory.NewQueue("payments")
		ctx, cancel := context.WithCancel(t.Context())
		sources := []*memory.Source{memory.NewSource(queue), memory.NewSource(queue)}
		var arrived [2]int
		done := make(chan error, 2)
		for i, source := range sources {
			go func() {
				done <- source.Run(ctx, sinkFunc(func(_ context.Context, d *handler.Delivery) error {
					arrived[i]++
					d.Settled()
					return nil
				}))
			}()
		}
		publish := func(n int) {
			for range n {
				synctest.Wait() // both stand in line
				queue.Publish(ctx, []*handler.Message{{ID: "evt"}})
			}
			synctest.Wait()
		}

		publish(20)
		require.Equal(t, [2]int{10, 10}, arrived)

		sources[0].Pause() // it stands in line still, and lets the other pass
		publish(20)
		require.Equal(t, [2]int{10, 30}, arrived)

		cancel()
		require.NoError(t, <-done)
		require.NoError(t, <-done)
	})
}

// Sources compete for messages, but not for those of a key that one of them has,
// nor while one of that key goes back.
func TestSource_OneSourceAKey(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		key, errAgain := []byte("order 42"), errors.New("once more")
		queue := memory.NewQueue("payments")
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 2)
		run := func() *transporttest.Sink {
			sink := transporttest.NewSink(transporttest.SinkConfig{})
			source := memory.NewSource(queue)
			require.NoError(t, source.KeepsOrder())
			go func() { ended <- source.Run(ctx, sink) }()
			synctest.Wait() // it waits in line
			return sink
		}
		one := run()
		queue.Publish(ctx, []*handler.Message{{ID: "evt_1", Key: key}, {ID: "evt_2", Key: key}, {ID: "evt_3", Key: key}})
		first, second, third := one.Next(t), one.Next(t), one.Next(t)

		two := run()
		publish := func(msg *handler.Message) {
			queue.Publish(ctx, []*handler.Message{msg})
			synctest.Wait()
		}
		publish(&handler.Message{ID: "evt_4", Key: key})
		fourth := one.Next(t)
		publish(&handler.Message{ID: "other", Key: []byte("order 43")})
		require.Equal(t, "other", two.Next(t).Message.ID)

		third.Returned(errAgain)
		fourth.Returned(errAgain)
		publish(&handler.Message{ID: "evt_5", Key: key})
		one.RequireQuiet(t)
		two.RequireQuiet(t)
		second.Returned(errAgain)
		first.Settled()
		synctest.Wait()
		var again []string
		for _, msg := range append(one.Arrived()[4:], two.Arrived()[1:]...) {
			again = append(again, msg.ID)
		}
		require.Equal(t, []string{"evt_2", "evt_3", "evt_4", "evt_5"}, again)

		cancel()
		one.ReturnAll(errAgain)
		two.ReturnAll(errAgain)
		require.NoError(t, <-ended)
		require.NoError(t, <-ended)
	})
}

package memory_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/transports/memory"
)

func TestQueue_CopiesWhatIsPublished(t *testing.T) {
	t.Parallel()

	queue := memory.NewQueue("payments")
	msg := &handler.Message{
		ID: "evt_1", Key: []byte("key"), Payload: []byte("payload"),
		Headers: handler.Headers{{Name: "n", Value: []byte("value")}},
	}
	require.Equal(t, []error{nil}, queue.Publish(t.Context(), []*handler.Message{msg}))
	msg.Key[0], msg.Payload[0], msg.Headers[0].Value[0] = 'X', 'X', 'X' // the publisher's later change

	// The first delivery is changed by its handler and comes again: unchanged.
	ctx, cancel := context.WithCancel(t.Context())
	var second *handler.Message
	err := memory.NewSource(queue).Run(ctx, sinkFunc(func(_ context.Context, d *handler.Delivery) error {
		if !d.Message.Origin.Redelivered {
			d.Message.Key[0], d.Message.Payload[0], d.Message.Headers[0].Value[0] = 'Y', 'Y', 'Y'
			d.Returned(errors.New("once more"))
			return nil
		}
		second = d.Message
		d.Settled()
		cancel()
		return nil
	}))

	require.NoError(t, err)
	require.Equal(t, "key", string(second.Key))
	require.Equal(t, "payload", string(second.Payload))
	require.Equal(t, "value", string(second.Headers[0].Value))
}

func TestQueue_PositionsDifferBetweenQueuesOfOneName(t *testing.T) {
	t.Parallel()

	positions := map[string]bool{}
	for range 2 {
		queue := memory.NewQueue("payments")
		queue.Publish(t.Context(), []*handler.Message{{ID: "evt_1"}, {ID: "evt_1"}})
		for _, msg := range settleAll(t, queue) {
			positions[msg.Origin.Position] = true
		}
	}

	require.Len(t, positions, 4)
}

func TestQueue_BrokerTime(t *testing.T) {
	t.Parallel()

	queue := memory.NewQueue("payments")
	old := time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)
	before := time.Now()
	queue.Publish(t.Context(), []*handler.Message{{ID: "now"}, {ID: "old", Origin: handler.Origin{Time: old}}})

	msgs := settleAll(t, queue)

	require.WithinRange(t, msgs[0].Origin.Time, before, time.Now())
	require.Equal(t, old, msgs[1].Origin.Time)
}

func TestQueue_PublishRefuses(t *testing.T) {
	t.Parallel()

	queue := memory.NewQueue("payments")
	ended, cancel := context.WithCancel(t.Context())
	cancel()

	withNil := queue.Publish(t.Context(), []*handler.Message{nil, {ID: "evt_1"}})
	tooLate := queue.Publish(ended, []*handler.Message{{ID: "evt_2"}})

	require.EqualError(t, withNil[0], `publish to queue "payments": message is nil`)
	require.True(t, handler.IsPermanent(withNil[0]))
	require.NoError(t, withNil[1])
	require.ErrorIs(t, tooLate[0], context.Canceled)
	require.False(t, handler.IsPermanent(tooLate[0]))
	require.Len(t, settleAll(t, queue), 1)
}

func TestQueue_WaitEndsWithItsContext(t *testing.T) {
	t.Parallel()

	queue := memory.NewQueue("payments")
	queue.Publish(t.Context(), []*handler.Message{{ID: "evt_1"}, {ID: "evt_2"}})
	ended, cancel := context.WithCancel(t.Context())
	cancel()

	err := queue.Wait(ended)

	require.ErrorIs(t, err, context.Canceled)
	require.EqualError(t, err, `wait for queue "payments": 2 messages are not settled: context canceled`)
}

// settleAll runs a source until the queue is empty and returns what it delivered.
func settleAll(t *testing.T, queue *memory.Queue) []*handler.Message {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var msgs []*handler.Message
	done := make(chan error, 1)
	go func() {
		done <- memory.NewSource(queue).Run(ctx, sinkFunc(func(_ context.Context, d *handler.Delivery) error {
			msgs = append(msgs, d.Message)
			d.Settled()
			return nil
		}))
	}()
	require.NoError(t, queue.Wait(ctx))
	cancel()
	require.NoError(t, <-done)
	return msgs
}

type sinkFunc func(ctx context.Context, d *handler.Delivery) error

func (f sinkFunc) Deliver(ctx context.Context, d *handler.Delivery) error { return f(ctx, d) }

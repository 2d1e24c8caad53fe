package rabbitmq_test

import (
	"context"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/transports/rabbitmq"
	"github.com/semel-go/semel/transports/transporttest"
)

// Case Q3: the connection was cut, the broker closed the channel, the consumer
// was cancelled because its queue was deleted, the broker was away for a while;
// the consumer stood still for ever and called itself healthy (watermill#262,
// knative eventing-rabbitmq#1369).
func TestSource_GoesOnAfter(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name  string
		fault func(t *testing.T, b *testBundle, l *line, r *running)
	}{
		{name: "ConnectionCut", fault: func(_ *testing.T, _ *testBundle, l *line, _ *running) {
			l.cut(false)
		}},
		{name: "ConnectionClosedByServer", fault: func(_ *testing.T, _ *testBundle, l *line, _ *running) {
			l.each(func(w *wire) { // connection.close 320, as an operator gives it
				w.slipIn(10, 50, append([]byte{1, 64, 6}, "FORCED\x00\x00\x00\x00"...))
			})
		}},
		{name: "ConsumerCancelled", fault: func(t *testing.T, b *testBundle, _ *line, _ *running) {
			_, err := b.channel.QueueDelete(b.queue, false, false, false)
			require.NoError(t, err)
		}},
		{name: "BrokerAway", fault: func(t *testing.T, _ *testBundle, l *line, r *running) {
			l.cut(true)
			r.await(t, rabbitmq.Connecting)
			tried := l.dialled()
			require.Eventually(t, func() bool { return l.dialled() > tried+2 }, patience, tick, "the source gave up")
			require.ErrorIs(t, r.source.Stats().LastError, errLineDown)
			l.restore()
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			b := setup(t)
			l := &line{}
			config := b.sourceConfig()
			config.Dial = l.dial
			config.Declare = func(ch *amqp.Channel) error {
				_, err := ch.QueueDeclare(b.queue, true, false, false, false, nil)
				return err
			}
			r := run(t, config, transporttest.SinkConfig{})
			b.publish(t, text("before"))
			before := r.next(t, "before")
			failures := r.source.Stats().Failures

			tt.fault(t, b, l, r)
			requireRevoked(t, before)
			require.Eventually(t, func() bool { return r.source.Stats().Failures > failures }, patience, tick)
			require.Error(t, r.source.Stats().LastError)
			before.Settled() // too late, and harmless

			r.await(t, rabbitmq.Consuming)
			b.publish(t, text("after"))
			for d := r.sink.Next(t); ; d = r.sink.Next(t) {
				d.Settled()
				if d.Message.ID == "after" {
					break
				}
				require.Equal(t, "before", d.Message.ID) // redelivered, where its queue was not deleted
			}
			r.stop(t)
			b.requireEmpty(t)
		})
	}
}

// Case Q3: the broker closes the channel, here for an answer to a tag that it
// does not know. The connection stays.
func TestSource_ChannelClosedByServer(t *testing.T) {
	t.Parallel()

	b := setup(t)
	l := &line{}
	var ours *amqp.Channel
	config := b.sourceConfig()
	config.Dial = l.dial
	config.Declare = func(ch *amqp.Channel) error {
		ours = ch // against the rules: the test needs it to provoke the broker
		return nil
	}
	r := run(t, config, transporttest.SinkConfig{})
	b.publish(t, text("a"))
	d := r.next(t, "a")

	require.NoError(t, ours.Ack(4711, false))
	requireRevoked(t, d)
	d.Settled()

	again := r.next(t, "a")
	require.True(t, again.Message.Origin.Redelivered)
	again.Settled()
	require.ErrorContains(t, r.source.Stats().LastError, "unknown delivery tag")
	require.Equal(t, 1, l.dialled(), "the connection was not kept")
	r.stop(t)
	b.requireEmpty(t)
}

// Case Q7: acknowledgements for a channel that had been replaced closed the new
// one, whose acknowledgements then closed the next, and so on
// (amqp091-go#296).
func TestSource_AnswersAfterTheChannelWasReplaced(t *testing.T) {
	t.Parallel()

	b := setup(t)
	l := &line{}
	config := b.sourceConfig()
	config.Dial = l.dial
	r := run(t, config, transporttest.SinkConfig{})
	b.publish(t, text("settled"), text("returned"))
	settled, returned := r.next(t, "settled"), r.next(t, "returned")
	l.cut(false)
	settledAgain, returnedAgain := r.next(t, "settled"), r.next(t, "returned")
	failures := r.source.Stats().Failures

	settled.Settled() // tag 1 and tag 2 are out on the new channel too
	returned.Returned(errGiveBack)
	returned.Settled()
	settledAgain.Settled()
	returnedAgain.Settled()

	r.stop(t)
	b.requireEmpty(t)
	require.Equal(t, failures, r.source.Stats().Failures)
}

// An engine that answers twice breaks its promise; the broker would close the
// channel for it, and with it the work of others.
func TestSource_AnswersOnce(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.publish(t, text("a"), text("b"))
	ctx, cancel := context.WithCancel(t.Context())
	source := rabbitmq.NewSource(b.sourceConfig())
	err := source.Run(ctx, sinkFunc(func(_ context.Context, d *handler.Delivery) error {
		d.Settled()
		d.Settled()
		d.Returned(errGiveBack)
		if d.Message.ID == "b" {
			cancel()
		}
		return nil
	}))

	require.NoError(t, err)
	require.Equal(t, uint64(0), source.Stats().Failures)
	require.Equal(t, 0, source.Stats().InFlight)
	b.requireEmpty(t)
}

type sinkFunc func(context.Context, *handler.Delivery) error

func (f sinkFunc) Deliver(ctx context.Context, d *handler.Delivery) error { return f(ctx, d) }

// Case Q3: the broker reads nothing any more, and an acknowledgement blocks in
// the socket. The client library would hold a lock meanwhile that its own
// heartbeat needs to end the connection, and stand still for ever.
func TestSource_AnswerBlocks(t *testing.T) {
	t.Parallel()

	b := setup(t)
	l := &line{}
	config := b.sourceConfig()
	config.Dial = l.dial
	config.RequestTimeout = time.Second
	r := run(t, config, transporttest.SinkConfig{})
	b.publish(t, text("a"))
	d := r.next(t, "a")
	l.each((*wire).stall)
	d.Settled() // returns when the write has timed out

	r.next(t, "a").Settled()
	r.stop(t)
	b.requireEmpty(t)
}

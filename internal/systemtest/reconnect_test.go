package systemtest_test

import (
	"context"
	"net"
	"net/url"
	"testing"

	"github.com/jackc/pgx/v5"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
	"github.com/semel-go/semel/internal/faultproxy"
	"github.com/semel-go/semel/transports/rabbitmq"
)

// Case Q3: the connection was cut, the broker closed the channel, the queue was
// deleted; the consumer stood still or handled what it had twice (watermill#262;
// knative eventing-rabbitmq#1369). Here with messages at every stage: running,
// waiting in the engine, waiting in the queue.
func TestReconnect_OneEffectEach(t *testing.T) {
	tests := []struct {
		name  string
		lost  bool // the queue was deleted with what waited in it: the producer sends again
		fault func(t *testing.T, q *queue, proxy *faultproxy.Proxy, ours *amqp.Channel)
	}{
		{name: "ConnectionCut", fault: func(_ *testing.T, _ *queue, proxy *faultproxy.Proxy, _ *amqp.Channel) {
			proxy.Cut()
		}},
		{name: "ChannelClosedByServer", fault: func(t *testing.T, _ *queue, _ *faultproxy.Proxy, ours *amqp.Channel) {
			require.NoError(t, ours.Ack(1<<40, false)) // a tag that the broker does not know
		}},
		{name: "QueueDeleted", lost: true, fault: func(t *testing.T, q *queue, _ *faultproxy.Proxy, _ *amqp.Channel) {
			_, err := q.channel.QueueDelete(q.name, false, false, false)
			require.NoError(t, err)
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			const total = 400
			b := setup(t, onRabbitMQ, place{})
			queue := b.broker.(*queue)
			address, err := url.Parse(queue.url)
			require.NoError(t, err)
			proxy := faultproxy.New(t, net.JoinHostPort(address.Hostname(), address.Port()))
			address.Host = proxy.Addr()
			var ours *amqp.Channel
			config := queue.recipe().rabbitmq(b.log.logger())
			config.URL = address.String()
			config.Declare = func(ch *amqp.Channel) error {
				ours = ch // against the rules: the test needs it to provoke the broker
				return queue.declare(ch)
			}
			source := rabbitmq.NewSource(config)
			running, release := make(chan struct{}, total), make(chan struct{})
			r := b.run(t, b.inbox(t, b.Pool, func(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
				running <- struct{}{}
				<-release
				return effect(ctx, tx, msg)
			}, inbox.Config{}), source)
			sent := messages(0, total)
			send(t, queue, sent...)
			for range workers {
				<-running
			}
			await(t, "a full prefetch in the engine", func() bool { return r.inFlight() == config.Prefetch })

			tt.fault(t, queue, proxy, ours)
			await(t, "the source to say so", func() bool { return source.Stats().Failures > 0 })
			require.Error(t, source.Stats().LastError)
			await(t, "the source to go on", func() bool { return source.Stats().State == rabbitmq.Consuming })
			if tt.lost {
				send(t, queue, sent...)
			}
			close(release) // what ran all the while commits, and cannot acknowledge any more
			b.awaitEffects(t, total)
			r.finish(t)
			b.exhaust(t)

			b.requireOneEffectEach(t, ids(sent))
			require.NotZero(t, r.in.Stats().Duplicates, "what ran at the fault came again")
			require.Zero(t, r.in.Stats().FailedAttempts)
			require.Empty(t, b.letters(t))
		})
	}
}

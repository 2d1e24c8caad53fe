package systemtest_test

import (
	"context"
	"crypto/rand"
	"errors"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/internal/services"
	"github.com/semel-go/semel/transports/rabbitmq"
)

// queue is a durable queue of the test's own on the real broker.
type queue struct {
	url       string
	name      string
	args      amqp.Table
	channel   *amqp.Channel // for the test's goroutine alone
	publisher *rabbitmq.Publisher
}

func newQueue(t *testing.T, p place) *queue {
	t.Helper()
	q := &queue{url: services.RabbitMQ(t), name: "semel-systemtest-" + rand.Text()}
	if p.singleActive {
		q.args = amqp.Table{"x-single-active-consumer": true}
	}
	conn, err := amqp.Dial(q.url)
	require.NoError(t, err)
	q.channel, err = conn.Channel()
	require.NoError(t, err)
	if p.deliveryLimit > 0 {
		q.args = amqp.Table{
			"x-queue-type": "quorum", "x-delivery-limit": p.deliveryLimit,
			"x-dead-letter-exchange": "", "x-dead-letter-routing-key": q.dropped(),
		}
		_, err := q.channel.QueueDeclare(q.dropped(), true, false, false, false, nil)
		require.NoError(t, err)
	}
	require.NoError(t, q.declare(q.channel))
	t.Cleanup(func() {
		if p.deliveryLimit > 0 {
			_, err := q.channel.QueueDelete(q.dropped(), false, false, false)
			require.NoError(t, err)
		}
		_, err := q.channel.QueueDelete(q.name, false, false, false)
		require.NoError(t, err)
		require.NoError(t, conn.Close())
	})
	q.publisher = rabbitmq.NewPublisher(rabbitmq.PublisherConfig{
		URL: q.url, RoutingKey: func(*handler.Message) string { return q.name }, MaxPayload: largestRecord,
	})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		require.NoError(t, q.publisher.Close(ctx))
	})
	return q
}

// declare fits SourceConfig.Declare.
func (q *queue) declare(ch *amqp.Channel) error {
	_, err := ch.QueueDeclare(q.name, true, false, false, false, q.args)
	return err
}

// dropped is the queue of what the broker gave up.
func (q *queue) dropped() string { return q.name + "-dropped" }

func (q *queue) publish(ctx context.Context, msgs ...*handler.Message) error {
	return errors.Join(q.publisher.Publish(ctx, msgs)...)
}

func (q *queue) recipe() recipe {
	return recipe{Kind: onRabbitMQ, Place: q.name, URL: q.url, Prefetch: 200}
}

// left is how many messages wait for a consumer. Once no consumer is left these
// are all: the broker puts back what was not acknowledged.
//
// It takes a message and gives it back. A question for the length alone jumps
// the queue's own line, and would miss what is just being put back.
func (q *queue) left(t *testing.T) int {
	t.Helper()
	d, ok, err := q.channel.Get(q.name, false)
	require.NoError(t, err)
	if !ok {
		return 0
	}
	require.NoError(t, d.Nack(false, true))
	return int(d.MessageCount) + 1
}

// send sends as a client that is not ours would.
func (q *queue) send(t *testing.T, all ...amqp.Publishing) {
	t.Helper()
	for _, p := range all {
		p.DeliveryMode = amqp.Persistent
		require.NoError(t, q.channel.PublishWithContext(t.Context(), "", q.name, true, false, p))
	}
}

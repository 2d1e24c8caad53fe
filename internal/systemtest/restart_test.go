package systemtest_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
	"github.com/semel-go/semel/internal/services"
	"github.com/semel-go/semel/transports/rabbitmq"
)

// Case Q3: the broker was restarted under a working consumer, which stood still
// and called itself healthy (watermill#262). Here a real RabbitMQ is killed,
// with messages at every stage: confirmed and waiting on its disk, in the
// engine, running in a handler, committed but not acknowledged, not yet
// published.
func TestRestart_OfRabbitMQ(t *testing.T) {
	t.Parallel()

	const before, after = 300, 100
	node := services.NewRabbitMQNode(t)
	b := setupDatabase(t)
	queue := newQueueOn(t, node.URL, b.log)
	node.Remember(t)
	b.broker = queue
	sent := messages(0, before+after)
	send(t, queue, sent[:before]...)
	running, release := make(chan struct{}, 2*len(sent)), make(chan struct{})
	source := rabbitmq.NewSource(queue.recipe().rabbitmq(b.log.logger()))
	r := b.run(t, b.inbox(t, b.Pool, func(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
		running <- struct{}{}
		<-release
		return effect(ctx, tx, msg)
	}, inbox.Config{}), source)
	await(t, "some to run and more to wait", func() bool { return len(running) == workers && r.inFlight() > workers })

	node.Kill(t)
	await(t, "the consumer to notice", func() bool { return source.Stats().State == rabbitmq.Connecting })
	close(release)
	b.awaitEffects(t, workers)
	published := make(chan struct{})
	go func() {
		defer close(published)
		queue.persist(t.Context(), sent[before:])
	}()
	tried := source.Stats().Failures
	await(t, "the consumer to try again", func() bool { return source.Stats().Failures > tried })
	require.False(t, b.log.has("is dead"))
	node.Start(t)
	select {
	case <-published:
	case <-time.After(patience):
		require.FailNow(t, "what waited for the broker was not published", "%v", queue.publisher.Stats().LastError)
	}

	b.awaitEffects(t, len(sent))
	require.Equal(t, rabbitmq.Consuming, source.Stats().State)
	await(t, "what was committed and not acknowledged to come again", func() bool { return r.in.Stats().Duplicates >= workers })
	r.finish(t)
	queue.reopen(t)
	b.exhaust(t)
	b.requireOneEffectEach(t, ids(sent))
	require.Zero(t, r.in.Stats().FailedAttempts)
	require.Empty(t, b.letters(t))
}

// newQueueOn makes a queue on a node that will be killed.
func newQueueOn(t *testing.T, url string, log *logbook) *queue {
	t.Helper()
	q := &queue{url: url, name: "semel-restart"}
	q.reopen(t)
	require.NoError(t, q.declare(q.channel))
	q.publisher = rabbitmq.NewPublisher(rabbitmq.PublisherConfig{
		URL: url, RoutingKey: func(*handler.Message) string { return q.name }, Logger: log.logger(),
	})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		require.NoError(t, q.publisher.Close(ctx))
	})
	return q
}

// reopen gives the queue a connection to look at it with.
func (q *queue) reopen(t *testing.T) {
	t.Helper()
	conn, err := amqp.Dial(q.url)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() }) // the node may have been killed since
	q.channel, err = conn.Channel()
	require.NoError(t, err)
}

// persist publishes until the broker has confirmed all, as an outbox does.
func (q *queue) persist(ctx context.Context, msgs []*handler.Message) {
	for len(msgs) > 0 && ctx.Err() == nil {
		var left []*handler.Message
		for i, err := range q.publisher.Publish(ctx, msgs) {
			if err != nil {
				left = append(left, msgs[i])
			}
		}
		msgs = left
	}
}

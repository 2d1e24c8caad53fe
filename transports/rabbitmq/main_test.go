package rabbitmq_test

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/internal/services"
	"github.com/semel-go/semel/transports/rabbitmq"
	"github.com/semel-go/semel/transports/transporttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	patience = 30 * time.Second
	tick     = 5 * time.Millisecond
)

var errGiveBack = errors.New("give it back")

// testBundle is a queue of our own on the real broker, and a plain connection
// to look at it with.
type testBundle struct {
	url     string
	queue   string
	conn    *amqp.Connection
	channel *amqp.Channel
}

func setup(t *testing.T) *testBundle {
	t.Helper()
	b := &testBundle{url: services.RabbitMQ(t), queue: "semel-test-" + rand.Text()}
	conn, err := amqp.Dial(b.url)
	require.NoError(t, err)
	b.conn = conn
	b.channel, err = conn.Channel()
	require.NoError(t, err)
	b.declare(t, nil)
	t.Cleanup(func() {
		_, err := b.channel.QueueDelete(b.queue, false, false, false)
		require.NoError(t, err)
		require.NoError(t, conn.Close())
	})
	return b
}

func (b *testBundle) declare(t *testing.T, args amqp.Table) {
	t.Helper()
	_, err := b.channel.QueueDeclare(b.queue, true, false, false, false, args)
	require.NoError(t, err)
}

// publish sends as a client that is not ours would.
func (b *testBundle) publish(t *testing.T, messages ...amqp.Publishing) {
	t.Helper()
	for _, p := range messages {
		require.NoError(t, b.channel.PublishWithContext(t.Context(), "", b.queue, true, false, p))
	}
}

// requireEmpty requires that the queue, with no consumer left, holds nothing.
func (b *testBundle) requireEmpty(t *testing.T) {
	t.Helper()
	require.Equal(t, 0, b.ready(t), "messages left in the queue")
}

func (b *testBundle) ready(t *testing.T) int {
	t.Helper()
	q, err := b.channel.QueueDeclarePassive(b.queue, true, false, false, false, nil)
	require.NoError(t, err)
	return q.Messages
}

func (b *testBundle) sourceConfig() rabbitmq.SourceConfig {
	return rabbitmq.SourceConfig{URL: b.url, Queue: b.queue, Logger: quietLogger()}
}

func (b *testBundle) newPublisher(t *testing.T, config rabbitmq.PublisherConfig) *rabbitmq.Publisher {
	t.Helper()
	if config.URL == "" {
		config.URL = b.url
	}
	if config.RoutingKey == nil {
		config.RoutingKey = func(*handler.Message) string { return b.queue }
	}
	config.Logger = quietLogger()
	p := rabbitmq.NewPublisher(config)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		require.NoError(t, p.Close(ctx))
	})
	return p
}

// quietLogger keeps what tests provoke out of their output.
func quietLogger() *slog.Logger { return slog.New(slog.DiscardHandler) }

// running is a source that runs.
type running struct {
	source *rabbitmq.Source
	sink   *transporttest.Sink
	cancel context.CancelFunc
	result chan error
}

// run runs a source. Whatever becomes of the test, Run has returned after it.
func run(t *testing.T, config rabbitmq.SourceConfig, sink transporttest.SinkConfig) *running {
	t.Helper()
	sink.Deadline = patience
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	r := &running{source: rabbitmq.NewSource(config), sink: transporttest.NewSink(sink), cancel: cancel, result: make(chan error, 1)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.result <- r.source.Run(ctx, r.sink)
		r.sink.RunReturned()
	}()
	t.Cleanup(func() {
		cancel()
		r.sink.Refuse(errGiveBack)
		r.sink.ReturnAll(errGiveBack)
		select {
		case <-ended:
		case <-time.After(patience):
			t.Error("Run did not return")
		}
		r.sink.RequireNoFault(t)
	})
	return r
}

// ended waits until Run has returned.
func (r *running) ended(t *testing.T) error {
	t.Helper()
	select {
	case err := <-r.result:
		return err
	case <-time.After(patience):
		require.Fail(t, "Run did not return")
		return nil
	}
}

// stop ends the context and requires a clean end.
func (r *running) stop(t *testing.T) {
	t.Helper()
	r.cancel()
	require.NoError(t, r.ended(t))
}

// await waits until the source says it is in state.
func (r *running) await(t *testing.T, state rabbitmq.State) {
	t.Helper()
	require.Eventually(t, func() bool { return r.source.Stats().State == state }, patience, tick, "the source is not %s", state)
}

// next takes the next delivery and requires that it is the message with id.
func (r *running) next(t *testing.T, id string) *handler.Delivery {
	t.Helper()
	d := r.sink.Next(t)
	require.Equal(t, id, d.Message.ID)
	return d
}

// requireRevoked waits until d is revoked.
func requireRevoked(t *testing.T, d *handler.Delivery) {
	t.Helper()
	select {
	case <-d.Revoked:
	case <-time.After(patience):
		require.Fail(t, "Revoked was not closed")
	}
}

// text is a small message.
func text(id string) amqp.Publishing {
	return amqp.Publishing{MessageId: id, Body: []byte(id), DeliveryMode: amqp.Persistent}
}

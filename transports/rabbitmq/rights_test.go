package rabbitmq_test

import (
	"context"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/internal/services"
	"github.com/semel-go/semel/transports/rabbitmq"
	"github.com/semel-go/semel/transports/transporttest"
)

// A real user who may read the queues of the tests, and nothing else. One user
// for all, because it takes the broker's tool a second to make one.
func TestRights(t *testing.T) {
	t.Parallel()

	const secret = "s3cret"
	url := services.RabbitMQUser(t, secret, "^$", "^$", "^semel-test-")

	// The right to consume is all that a source needs. That it cannot look at
	// the queue's limits is said once, quietly.
	t.Run("SourceThatMayOnlyRead", func(t *testing.T) {
		t.Parallel()

		b := setup(t)
		b.redeclare(t, false, false, amqp.Table{"x-message-ttl": 60_000})
		log := &logbook{}
		config := b.sourceConfig()
		config.URL, config.Logger = url, log.logger()
		r := run(t, config, transporttest.SinkConfig{})
		b.publish(t, text("a"))
		r.next(t, "a").Settled()
		r.stop(t)

		require.Zero(t, r.source.Stats().Failures)
		b.requireEmpty(t)
		lines := log.lines("")
		require.Len(t, lines, 1)
		for _, part := range []string{"level=INFO", cannotTell, "ACCESS_REFUSED", b.queue} {
			require.Contains(t, lines[0], part)
		}
		require.NotContains(t, lines[0], secret)
	})

	t.Run("SourceThatMayNotRead", func(t *testing.T) {
		t.Parallel()

		b := setup(t)
		b.remove(t)
		b.queue = "other-" + b.queue
		b.declare(t, nil)
		config := b.sourceConfig()
		config.URL = url
		err := run(t, config, transporttest.SinkConfig{}).ended(t)

		for _, part := range []string{"consume queue", "ACCESS_REFUSED", "access to queue '" + b.queue + "'"} {
			require.ErrorContains(t, err, part)
		}
		require.NotContains(t, err.Error(), secret)
	})

	t.Run("SourceThatMayNotDeclare", func(t *testing.T) {
		t.Parallel()

		b := setup(t)
		config := b.sourceConfig()
		config.URL = url
		config.Declare = func(ch *amqp.Channel) error {
			_, err := ch.QueueDeclare(b.queue, true, false, false, false, nil)
			return err
		}
		err := run(t, config, transporttest.SinkConfig{}).ended(t)

		require.ErrorContains(t, err, "declare what the consumer needs")
		require.ErrorContains(t, err, "ACCESS_REFUSED")
	})

	// A right can be given at any time, and then the same message passes.
	t.Run("PublisherThatMayNotWrite", func(t *testing.T) {
		t.Parallel()

		b := setup(t)
		p := b.newPublisher(t, rabbitmq.PublisherConfig{URL: url})
		for range 2 {
			err := publishOne(t.Context(), p, &handler.Message{ID: "a"})

			require.ErrorContains(t, err, "ACCESS_REFUSED")
			require.ErrorContains(t, err, `publish message "a"`)
			require.NotContains(t, err.Error(), secret)
			require.False(t, handler.IsPermanent(err))
		}
		b.requireEmpty(t)
	})
}

// A wrong password is not the message's fault: the publisher waits as for a
// broker that is away, and says why.
func TestPublisher_WrongPassword(t *testing.T) {
	t.Parallel()

	b := setup(t)
	p := b.newPublisher(t, rabbitmq.PublisherConfig{URL: withUser(b.url, "guest", "s3cret-wrong")})
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() { result <- publishOne(ctx, p, &handler.Message{ID: "a"}) }()
	require.Eventually(t, func() bool { return p.Stats().Failures > 1 }, patience, tick, "the publisher gave up")
	cancel()
	err := <-result

	require.ErrorContains(t, err, "username or password not allowed")
	require.True(t, handler.IsUnavailable(err))
	require.False(t, handler.IsPermanent(err))
	require.NotContains(t, err.Error(), "s3cret")
}

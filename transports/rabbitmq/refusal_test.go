package rabbitmq_test

import (
	"bytes"
	"log/slog"
	"net/url"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/transports/rabbitmq"
	"github.com/semel-go/semel/transports/transporttest"
)

// What the broker refuses at the start ends Run with an error that says what
// and where, and shows no password.
func TestSource_RefusedAtStart(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name   string
		change func(*rabbitmq.SourceConfig)
		want   string
	}{
		{name: "Password", change: func(c *rabbitmq.SourceConfig) { c.URL = withUser(c.URL, "guest", "s3cret-wrong") }, want: "username or password not allowed"},
		{name: "VirtualHost", change: func(c *rabbitmq.SourceConfig) { c.AMQP.Vhost = "no-such-vhost" }, want: "no-such-vhost"},
		{name: "QueueMissing", change: func(c *rabbitmq.SourceConfig) { c.Queue = "semel-no-such-queue" }, want: "no queue 'semel-no-such-queue'"},
		{name: "DeclaredDifferently", change: func(c *rabbitmq.SourceConfig) {
			queue := c.Queue
			c.Declare = func(ch *amqp.Channel) error {
				_, err := ch.QueueDeclare(queue, false, false, false, false, nil)
				return err
			}
		}, want: "inequivalent arg 'durable'"},
		{name: "ExchangeTypeUnknown", change: func(c *rabbitmq.SourceConfig) {
			c.Declare = func(ch *amqp.Channel) error {
				return ch.ExchangeDeclare("semel-test-odd", "x-semel", true, false, false, false, nil)
			}
		}, want: "unknown exchange type"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			b := setup(t)
			var log bytes.Buffer
			config := b.sourceConfig()
			config.Logger = slog.New(slog.NewTextHandler(&log, nil))
			tt.change(&config)

			r := run(t, config, transporttest.SinkConfig{})
			err := r.ended(t)

			require.ErrorContains(t, err, tt.want)
			require.ErrorContains(t, err, "consume queue")
			require.NotContains(t, err.Error()+log.String(), "s3cret")
		})
	}
}

// The same refusal after the source has worked is waited out: somebody will
// put the queue back.
func TestSource_RefusedLater(t *testing.T) {
	t.Parallel()

	b := setup(t)
	r := run(t, b.sourceConfig(), transporttest.SinkConfig{})
	r.await(t, rabbitmq.Consuming)
	_, err := b.channel.QueueDelete(b.queue, false, false, false)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return r.source.Stats().Failures > 2 }, patience, tick, "the source gave up")
	require.ErrorContains(t, r.source.Stats().LastError, "NOT_FOUND")

	b.declare(t, nil)
	b.publish(t, text("back"))
	r.next(t, "back").Settled()
	r.stop(t)
}

func TestSource_ConnectTimeout(t *testing.T) {
	t.Parallel()

	b := setup(t)
	config := b.sourceConfig()
	config.ConnectTimeout = 50 * time.Millisecond
	config.Dial = (&line{silent: true}).dial
	r := run(t, config, transporttest.SinkConfig{})
	require.Eventually(t, func() bool { return r.source.Stats().Failures > 1 }, patience, tick)
	require.ErrorContains(t, r.source.Stats().LastError, "no answer within 50ms")
	r.stop(t)
}

func TestSource_RequestTimeout(t *testing.T) {
	t.Parallel()

	b := setup(t)
	l := &line{}
	config := b.sourceConfig()
	config.RequestTimeout = 500 * time.Millisecond
	config.Dial = l.dial
	first := true
	config.Declare = func(ch *amqp.Channel) error {
		if first { // only the first connection falls silent
			first = false
			l.each((*wire).blackHole)
		}
		_, err := ch.QueueDeclarePassive(b.queue, true, false, false, false, nil)
		return err
	}
	r := run(t, config, transporttest.SinkConfig{})

	r.await(t, rabbitmq.Consuming)
	require.ErrorContains(t, r.source.Stats().LastError, "declare what the consumer needs: no answer within 500ms")
	r.stop(t)
}

func withUser(broker, user, password string) string {
	u, err := url.Parse(broker)
	if err != nil {
		return err.Error()
	}
	u.User = url.UserPassword(user, password)
	return u.String()
}

package rabbitmq_test

import (
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/internal/services"
	"github.com/semel-go/semel/transports/rabbitmq"
	"github.com/semel-go/semel/transports/transporttest"
)

func TestSource_KeepsOrder(t *testing.T) {
	t.Parallel()

	err := rabbitmq.NewSource(rabbitmq.SourceConfig{Queue: "payments"}).KeepsOrder()
	require.EqualError(t, err, `consume queue "payments" in order: other consumers may take from it too: `+
		`declare it with x-single-active-consumer and set SourceConfig.SingleActiveConsumer, or, if it is a classic queue, set SourceConfig.Exclusive`)
	require.NoError(t, rabbitmq.NewSource(rabbitmq.SourceConfig{Queue: "payments", Exclusive: true}).KeepsOrder())
	require.NoError(t, rabbitmq.NewSource(rabbitmq.SourceConfig{Queue: "payments", SingleActiveConsumer: true}).KeepsOrder())
}

// A quorum queue gives its messages to several exclusive consumers in turn
// (rabbitmq-website#1973), and a queue with a single active consumer lets none
// in, for ever.
func TestSource_RefusesWhatIsShared(t *testing.T) {
	t.Parallel()

	single := func(c *rabbitmq.SourceConfig) { c.SingleActiveConsumer = true }
	exclusive := func(c *rabbitmq.SourceConfig) { c.Exclusive = true }
	tests := []struct {
		name      string
		arguments amqp.Table
		config    func(*rabbitmq.SourceConfig)
		want      string
	}{
		{name: "Classic", config: single, want: "declared without x-single-active-consumer"},
		{name: "Quorum", config: single, arguments: amqp.Table{"x-queue-type": "quorum"}, want: "declared without x-single-active-consumer"},
		{name: "SingleActiveIsFalse", config: single, arguments: amqp.Table{"x-single-active-consumer": false}, want: "declared without x-single-active-consumer"},
		{name: "ExclusiveOnQuorum", config: exclusive, arguments: amqp.Table{"x-queue-type": "quorum"}, want: "a quorum queue is open to others beside an exclusive consumer"},
		{
			name: "ExclusiveOnQuorumSingleActive", config: exclusive, arguments: amqp.Table{"x-queue-type": "quorum", "x-single-active-consumer": true},
			want: "set SingleActiveConsumer instead of Exclusive",
		},
		{
			name: "ExclusiveOnSingleActive", config: exclusive, arguments: amqp.Table{"x-single-active-consumer": true, "x-message-ttl": 60_000},
			want: "set SingleActiveConsumer instead of Exclusive",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			b := setup(t)
			b.redeclare(t, false, false, tt.arguments)
			b.publish(t, text("a"))
			config := b.sourceConfig()
			tt.config(&config)
			r := run(t, config, transporttest.SinkConfig{})

			err := r.ended(t)

			require.ErrorContains(t, err, "the queue cannot be kept in order")
			require.ErrorContains(t, err, tt.want)
			require.Empty(t, r.sink.Arrived())
		})
	}
}

// A queue that was made anew, and differently, is not consumed, and waited for.
func TestSource_RefusesWhatIsSharedLater(t *testing.T) {
	t.Parallel()

	b := setup(t)
	single := amqp.Table{"x-single-active-consumer": true}
	b.redeclare(t, false, false, single)
	config := b.sourceConfig()
	config.SingleActiveConsumer = true
	r := run(t, config, transporttest.SinkConfig{})
	r.await(t, rabbitmq.Consuming)
	b.redeclare(t, false, false, nil)
	b.publish(t, text("a"))
	require.Eventually(t, func() bool {
		err := r.source.Stats().LastError
		return r.source.Stats().Failures > 3 && err != nil && r.source.Stats().State == rabbitmq.Connecting
	}, patience, tick)
	require.ErrorContains(t, r.source.Stats().LastError, "the queue cannot be kept in order")
	require.Empty(t, r.sink.Arrived())

	b.redeclare(t, false, false, single)
	b.publish(t, text("b"))
	r.next(t, "b").Settled()
	r.stop(t)
}

// Who may only read cannot ask what the queue was declared with.
func TestSource_OrderTakenAtItsWord(t *testing.T) {
	t.Parallel()

	const secret, takesItsWord = "s3cret", "taking the configuration's word for it"
	url := services.RabbitMQUser(t, secret, "^$", "^$", "^semel-test-")
	for _, tt := range orders() {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			b, log, l := setup(t), &logbook{}, &line{}
			b.redeclare(t, false, false, tt.arguments)
			config := b.sourceConfig()
			config.URL, config.Logger, config.Dial = url, log.logger(), l.dial
			tt.config(&config)
			r := run(t, config, transporttest.SinkConfig{})
			b.publish(t, text("a"))
			r.next(t, "a").Settled()
			l.cut(false)
			b.publish(t, text("b"))
			for d := r.sink.Next(t); ; d = r.sink.Next(t) {
				d.Settled()
				if d.Message.ID == "b" {
					break
				}
			}
			r.stop(t)

			lines := log.lines(takesItsWord)
			require.Len(t, lines, 1)
			for _, part := range []string{"level=INFO", "ACCESS_REFUSED", b.queue} {
				require.Contains(t, lines[0], part)
			}
			require.NotContains(t, lines[0], secret)
		})
	}
}

// A rolling deployment starts the new process before the old one has gone: it
// waits without a fuss, and takes over.
func TestSource_ExclusiveWaitsForTheOther(t *testing.T) {
	t.Parallel()

	const waits, tookOver = "waiting to take the queue over", "took the queue over"
	b, log, l := setup(t), &logbook{}, &line{}
	config := b.sourceConfig()
	config.Exclusive = true
	old := run(t, config, transporttest.SinkConfig{})
	b.publish(t, text("a"), text("b"))
	out := old.next(t, "a")
	old.next(t, "b").Settled()

	config.Logger, config.Dial = log.logger(), l.dial
	next := run(t, config, transporttest.SinkConfig{})
	next.await(t, rabbitmq.Waiting)
	since := next.source.Stats().LastErrorAt
	require.Eventually(t, func() bool { return next.source.Stats().LastErrorAt.After(since) }, patience, tick, "it asked only once")
	stats := next.source.Stats()
	require.Equal(t, rabbitmq.Waiting, stats.State)
	require.ErrorContains(t, stats.LastError, "another consumer may have the queue")
	require.Zero(t, stats.Failures)

	old.cancel() // first: what is given back ends the channel, and the other may be the quicker one
	out.Returned(errGiveBack)
	require.NoError(t, old.ended(t))
	next.next(t, "a").Settled()
	require.Equal(t, rabbitmq.Consuming, next.source.Stats().State)
	next.stop(t)
	b.requireEmpty(t)

	require.Equal(t, 1, l.dialled())
	require.Len(t, log.lines(waits), 1)
	require.Contains(t, log.lines(waits)[0], "level=WARN")
	require.Len(t, log.lines(tookOver), 1)
	require.Contains(t, log.lines(tookOver)[0], "waited_for=")
	require.Len(t, log.lines(""), 2)
}

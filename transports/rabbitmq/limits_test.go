package rabbitmq_test

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/transports/rabbitmq"
	"github.com/semel-go/semel/transports/transporttest"
)

// What the warnings say. The queue, the limit and its value follow.
const (
	dropsMessages = "the broker drops messages of this queue at its limit, and it was declared without a dead letter exchange"
	deletesQueue  = "the broker deletes this queue with all messages in it when it has been without a consumer"
	cannotTell    = "cannot tell whether the broker drops messages of this queue"
)

// A queue at whose limit the broker drops messages without a trace is named
// loudly when the source starts, and consumed all the same: our promise does
// not reach messages that we never see.
func TestSource_WarnsOfLimits(t *testing.T) {
	t.Parallel()

	const (
		ttl      = "x-message-ttl"
		length   = "x-max-length"
		bytes    = "x-max-length-bytes"
		overflow = "x-overflow"
		dlx      = "x-dead-letter-exchange"
		expires  = "x-expires"
		attempts = "x-delivery-limit"
		kind     = "x-queue-type"
	)
	tests := []struct {
		name       string
		arguments  amqp.Table
		transient  bool
		autoDelete bool
		drops      string // the limits that the warning names; empty: no warning
		deletes    string
	}{
		{name: "NoLimit"},
		{name: "NoLimitTransient", transient: true},
		{name: "NoLimitButOtherArguments", arguments: amqp.Table{"x-max-priority": int32(5), "x-single-active-consumer": true, "x-queue-mode": "lazy"}},
		{name: "NoLimitOnAQuorumQueue", arguments: amqp.Table{kind: "quorum"}},
		{name: "NoLimitOnAClassicQueueByName", arguments: amqp.Table{kind: "classic"}},
		{name: "DeadLetterExchangeOnly", arguments: amqp.Table{dlx: "dead"}},

		{name: "TTL", arguments: amqp.Table{ttl: int32(60_000)}, drops: "x-message-ttl=60000"},
		{name: "TTLTransient", arguments: amqp.Table{ttl: int64(60_000)}, transient: true, drops: "x-message-ttl=60000"},
		{name: "Length", arguments: amqp.Table{length: int16(7)}, drops: "x-max-length=7"},
		{name: "LengthDropHead", arguments: amqp.Table{length: 7, overflow: "drop-head"}, drops: "x-max-length=7"},
		{name: "LengthZero", arguments: amqp.Table{length: 0}, drops: "x-max-length=0"},
		{name: "Bytes", arguments: amqp.Table{bytes: int64(1 << 40)}, drops: "x-max-length-bytes=1099511627776"},
		{name: "AllOfThem", arguments: amqp.Table{
			ttl: 60_000, length: 7, bytes: 8, "x-max-priority": 3, "x-single-active-consumer": true,
		}, drops: "x-message-ttl=60000, x-max-length=7, x-max-length-bytes=8"},
		{name: "TTLOfAQuorumQueue", arguments: amqp.Table{kind: "quorum", ttl: 60_000}, drops: "x-message-ttl=60000"},
		{name: "LengthOfAQuorumQueue", arguments: amqp.Table{kind: "quorum", length: 7}, drops: "x-max-length=7"},
		{name: "DeliveryLimit", arguments: amqp.Table{kind: "quorum", attempts: 5}, drops: "x-delivery-limit=5"},

		{name: "TTLWithDeadLetterExchange", arguments: amqp.Table{ttl: 60_000, dlx: "dead"}},
		{name: "TTLWithDefaultExchange", arguments: amqp.Table{ttl: 60_000, dlx: "", "x-dead-letter-routing-key": "dead"}},
		{name: "LengthWithDeadLetterExchange", arguments: amqp.Table{length: 7, dlx: "it's 'dead' but current is none"}},
		{name: "BytesWithDeadLetterExchange", arguments: amqp.Table{bytes: 7, dlx: "12"}},
		{name: "AllWithDeadLetterExchange", arguments: amqp.Table{ttl: 60_000, length: 7, bytes: 8, dlx: "dead", "x-dead-letter-routing-key": "dead"}},
		{name: "DeliveryLimitWithDeadLetterExchange", arguments: amqp.Table{kind: "quorum", attempts: 5, dlx: "dead"}},

		// The broker refuses the newest message, and its publisher knows.
		{name: "LengthRejectPublish", arguments: amqp.Table{length: 7, overflow: "reject-publish"}},
		{name: "BytesRejectPublish", arguments: amqp.Table{bytes: 7, overflow: "reject-publish"}},
		{name: "LengthRejectPublishDLX", arguments: amqp.Table{length: 7, overflow: "reject-publish-dlx"}},
		{name: "TTLRejectPublish", arguments: amqp.Table{ttl: 60_000, length: 7, overflow: "reject-publish"}, drops: "x-message-ttl=60000"},

		// A stream is a log: it keeps messages for a time, consumed or not.
		{name: "BytesOfAStream", arguments: amqp.Table{kind: "stream", bytes: int64(1 << 30)}},

		{name: "Expires", arguments: amqp.Table{expires: int64(3_600_000)}, deletes: "x-expires=3600000"},
		{name: "ExpiresWithDeadLetterExchange", arguments: amqp.Table{expires: 3_600_000, dlx: "dead"}, deletes: "x-expires=3600000"},
		{name: "AutoDelete", autoDelete: true, deletes: "auto-delete"},
		{name: "TTLAndAutoDelete", arguments: amqp.Table{ttl: 60_000}, autoDelete: true, drops: "x-message-ttl=60000", deletes: "auto-delete"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			b := setup(t)
			b.redeclare(t, tt.transient, tt.autoDelete, tt.arguments)
			log := &logbook{}
			config := b.sourceConfig()
			config.Logger = log.logger()
			r := run(t, config, transporttest.SinkConfig{})
			r.await(t, rabbitmq.Consuming)

			log.requireLimits(t, dropsMessages, b.queue, tt.drops)
			log.requireLimits(t, deletesQueue, b.queue, tt.deletes)
			require.Empty(t, log.lines(cannotTell))
			b.publish(t, text("a"))
			r.next(t, "a").Settled()
			r.stop(t)
			require.Zero(t, r.source.Stats().Failures, "the consumer was disturbed")
		})
	}
}

// The warning comes once in a run, not after each reconnect, and again when
// the source is run again.
func TestSource_WarnsOfLimitsOnce(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.redeclare(t, false, false, amqp.Table{"x-message-ttl": 60_000})
	l, log := &line{}, &logbook{}
	config := b.sourceConfig()
	config.Dial, config.Logger = l.dial, log.logger()
	for runs := range 2 {
		r := run(t, config, transporttest.SinkConfig{})
		r.await(t, rabbitmq.Consuming)
		for range 2 {
			failures := r.source.Stats().Failures
			l.cut(false)
			require.Eventually(t, func() bool { return r.source.Stats().Failures > failures }, patience, tick)
			r.await(t, rabbitmq.Consuming)
		}
		r.source.Pause()
		r.await(t, rabbitmq.Paused)
		r.source.Resume()
		r.await(t, rabbitmq.Consuming)
		r.stop(t)
		require.Len(t, log.lines(dropsMessages), runs+1)
	}
}

// A queue that the source declares itself is looked at too.
func TestSource_WarnsOfLimitsItDeclares(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.remove(t)
	log := &logbook{}
	config := b.sourceConfig()
	config.Logger = log.logger()
	config.Declare = func(ch *amqp.Channel) error {
		_, err := ch.QueueDeclare(b.queue, true, false, false, false, amqp.Table{"x-max-length": 7})
		return err
	}
	r := run(t, config, transporttest.SinkConfig{})
	r.await(t, rabbitmq.Consuming)

	log.requireLimits(t, dropsMessages, b.queue, "x-max-length=7")
	r.stop(t)
}

// To look at a queue that is not there does not make one, and adds nothing to
// what the source says about it.
func TestSource_LimitsOfAMissingQueue(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.remove(t)
	log := &logbook{}
	config := b.sourceConfig()
	config.Logger = log.logger()

	err := run(t, config, transporttest.SinkConfig{}).ended(t)

	require.ErrorContains(t, err, "no queue '"+b.queue+"'")
	require.Empty(t, log.lines(""))
	_, err = b.channel.QueueDeclarePassive(b.queue, true, false, false, false, nil)
	require.ErrorContains(t, err, "NOT_FOUND")
	b.channel, err = b.conn.Channel() // the broker closed the other
	require.NoError(t, err)
}

// What cannot be read is said once, and consumed. The broker cuts its refusals
// after 255 bytes: behind a very long name there is no value left.
func TestSource_LimitsUnreadable(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.remove(t)
	b.queue += strings.Repeat("x", 255-len(b.queue))
	b.declare(t, amqp.Table{"x-message-ttl": 60_000})
	log := &logbook{}
	config := b.sourceConfig()
	config.Logger = log.logger()
	r := run(t, config, transporttest.SinkConfig{})
	r.await(t, rabbitmq.Consuming)

	lines := log.lines(cannotTell)
	require.Len(t, lines, 1)
	require.Contains(t, lines[0], "level=INFO")
	require.Contains(t, lines[0], b.queue)
	require.Empty(t, log.lines(dropsMessages))
	r.stop(t)
	require.Zero(t, r.source.Stats().Failures)
}

// redeclare makes the queue anew.
func (b *testBundle) redeclare(t *testing.T, transient, autoDelete bool, arguments amqp.Table) {
	t.Helper()
	b.remove(t)
	_, err := b.channel.QueueDeclare(b.queue, !transient, autoDelete, false, false, arguments)
	require.NoError(t, err)
}

func (b *testBundle) remove(t *testing.T) {
	t.Helper()
	_, err := b.channel.QueueDelete(b.queue, false, false, false)
	require.NoError(t, err)
}

// logbook keeps what a source logs. It is safe for concurrent use.
type logbook struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
}

// Write implements [io.Writer].
func (l *logbook) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logbook) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// lines returns the lines with a text.
func (l *logbook) lines(text string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var lines []string
	for line := range strings.Lines(l.text.String()) {
		if strings.Contains(line, text) {
			lines = append(lines, line)
		}
	}
	return lines
}

// requireLimits requires one warning about a queue with these limits, or none.
func (l *logbook) requireLimits(t *testing.T, warning, queue, limits string) {
	t.Helper()
	lines := l.lines(warning)
	if limits == "" {
		require.Empty(t, lines)
		return
	}
	require.Len(t, lines, 1)
	line := strings.ReplaceAll(lines[0], `"`, "")
	for _, part := range []string{"level=WARN", "queue=" + queue, "lost", "broker=", "limits=" + limits + "\n"} {
		require.Contains(t, line, part)
	}
}

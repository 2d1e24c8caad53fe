package systemtest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
	"github.com/semel-go/semel/internal/faultproxy"
	"github.com/semel-go/semel/transports/kafka"
)

// A broker that accepts connections and never answers is not the same as one
// that is away: nothing fails by itself. Run says that it cannot reach it, with
// the timeouts as they come, ends when it is told to, and goes on when the
// broker answers again.
func TestBlackHole_AtStart(t *testing.T) {
	t.Parallel()

	b := setup(t, onKafka, place{})
	tp := b.broker.(*topic)
	opt, proxy := tp.through(t)
	proxy.BlackHole(true)
	sent := messages(0, 10)
	send(t, tp, sent...)
	start := func() *running {
		said := &logbook{}
		source := kafka.NewSource(kafka.SourceConfig{Group: tp.group, Topics: []string{tp.name}, Logger: said.logger()},
			kgo.SeedBrokers(tp.brokers...), opt)
		r := b.run(t, b.inbox(t, b.Pool, effect, inbox.Config{}), source)
		await(t, "a log line that names the broker", func() bool {
			return said.has("level=ERROR", "Kafka cannot be reached; trying again", tp.brokers[0], "see whether the brokers run")
		})
		return r
	}

	gone := start()
	gone.finish(t)
	require.Zero(t, gone.passed())

	later := start()
	proxy.BlackHole(false) // what was connected stays in the hole
	later.awaitSettled(t, len(sent))
	later.finish(t)
	b.requireOneEffectEach(t, ids(sent))
	require.Zero(t, tp.left(t))
}

// blackHole is a member that handled some messages, runs a handler, and hears
// nothing from its broker any more.
type blackHole struct {
	*testBundle
	*held
	topic  *topic
	proxy  *faultproxy.Proxy
	member *running
	sent   []*handler.Message
}

// setupBlackHole opens the hole, waits until Run has said so, and lets the
// handler end. What it did cannot be acknowledged, and 10 messages wait that
// the member does not know of.
func setupBlackHole(t *testing.T, p protocol) *blackHole {
	t.Helper()
	b, tp := p.setup(t, 2)
	opt, proxy := tp.through(t)
	h := &blackHole{testBundle: b, held: newHeld(), topic: tp, proxy: proxy, sent: messages(0, 21)}
	h.sent[10].Version = heldVersion
	send(t, tp, h.sent[:10]...)
	source := p.source(tp, kafka.SourceConfig{Logger: b.log.logger()}, opt, kgo.RequestTimeoutOverhead(time.Second))
	h.member = b.run(t, b.inbox(t, b.Pool, h.handle, inbox.Config{HandlerTimeout: 5 * patience}), source)
	t.Cleanup(h.letGo)
	await(t, "what was settled to be committed", func() bool { return h.member.passed().settled == 10 && tp.left(t) == 0 })
	send(t, tp, h.sent[10])
	await(t, "a handler that runs", func() bool { return h.running.Load() == 1 })

	proxy.BlackHole(true) // for new connections
	proxy.Pause()         // for those that are there
	send(t, tp, h.sent[11:]...)
	await(t, "a log line", func() bool { return b.log.has("level=ERROR", "see whether the brokers") })
	require.Error(t, source.Stats().LastError)
	h.letGo()
	h.member.awaitSettled(t, 11)
	require.Equal(t, 11, tp.left(t))
	return h
}

// The hole closes, and the member goes on where it was. What was sent into the
// dead connections may arrive late.
func TestBlackHole_GoesOn(t *testing.T) {
	t.Parallel()

	eachProtocol(t, func(t *testing.T, p protocol) {
		h := setupBlackHole(t, p)
		h.proxy.BlackHole(false)
		h.proxy.Resume()
		h.awaitEffects(t, len(h.sent))
		await(t, "the committed offsets to be the ends", func() bool { return h.topic.left(t) == 0 })
		h.member.finish(t)

		h.requireOneEffectEach(t, ids(h.sent))
		require.Zero(t, h.member.in.Stats().FailedAttempts)
		require.Empty(t, h.letters(t))
		require.Zero(t, h.topic.left(t), "and stays there")
	})
}

// The member is told to end while it is in the hole. What it could not
// acknowledge comes again, and is recognised.
func TestBlackHole_Ends(t *testing.T) {
	t.Parallel()

	eachProtocol(t, func(t *testing.T, p protocol) {
		h := setupBlackHole(t, p)
		h.member.finish(t)
		require.Equal(t, 11, h.topic.left(t))

		next := h.run(t, h.inbox(t, h.Pool, effect, inbox.Config{}), p.source(h.topic, kafka.SourceConfig{Logger: h.log.logger()}))
		next.awaitSettled(t, 11)
		next.finish(t)
		h.requireOneEffectEach(t, ids(h.sent))
		require.EqualValues(t, 1, next.in.Stats().Duplicates)
		require.Zero(t, h.member.in.Stats().FailedAttempts)
		require.Empty(t, h.letters(t))
		require.Zero(t, h.topic.left(t))
	})
}

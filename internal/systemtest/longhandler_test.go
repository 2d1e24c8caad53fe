package systemtest_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
	"github.com/semel-go/semel/internal/faultproxy"
	"github.com/semel-go/semel/transports/kafka"
)

// held is a handler that keeps messages with a certain version until it is
// told to let them go, after their write: their transactions stay open.
type held struct {
	running atomic.Int32
	release chan struct{}
	letGo   func() // closes release
}

const heldVersion = 77

func newHeld() *held {
	release := make(chan struct{})
	return &held{release: release, letGo: sync.OnceFunc(func() { close(release) })}
}

func (h *held) handle(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
	if err := effect(ctx, tx, msg); err != nil {
		return err
	}
	if msg.Version == heldVersion {
		h.running.Add(1)
		select {
		case <-h.release:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// longHandler is a member of a group with handlers that run for longer than
// any time of that group.
type longHandler struct {
	*testBundle
	*held
	protocol protocol
	topic    *topic
	source   *kafka.Source
	member   *running
	sent     []*handler.Message // the first ones are held, one in each partition
}

const longPartitions = 2

// setupLong starts the member and waits until it holds a message of each
// partition.
func setupLong(t *testing.T, p protocol, opts func(tp *topic) []kgo.Opt) *longHandler {
	t.Helper()
	b, tp := p.setup(t, longPartitions)
	l := &longHandler{testBundle: b, held: newHeld(), protocol: p, topic: tp}
	hold := messages(0, longPartitions)
	for i, msg := range hold {
		msg.Version, msg.Key = heldVersion, keyIn(i, longPartitions, "held")
	}
	l.send(t, hold...)
	l.source = p.source(tp, kafka.SourceConfig{Logger: b.log.logger()}, opts(tp)...)
	l.member = b.run(t, b.inbox(t, b.Pool, l.handle, inbox.Config{HandlerTimeout: 5 * patience}), l.source)
	t.Cleanup(l.letGo)
	await(t, "handlers that run", func() bool { return l.running.Load() == longPartitions })
	p.requireUsed(t, tp)
	return l
}

func directly(*topic) []kgo.Opt { return nil }

// keyIn returns a key whose messages go to this of n partitions.
func keyIn(partition, n int, prefix string) []byte {
	where := kgo.StickyKeyPartitioner(nil).ForTopic("")
	for i := 0; ; i++ {
		key := fmt.Append(nil, prefix, i)
		if where.Partition(&kgo.Record{Key: key}, n) == partition {
			return key
		}
	}
}

func (l *longHandler) send(t *testing.T, msgs ...*handler.Message) {
	t.Helper()
	send(t, l.topic, msgs...)
	l.sent = append(l.sent, msgs...)
}

// second starts another member, whose handlers hold nothing.
func (l *longHandler) second(t *testing.T) (*running, *kafka.Source) {
	t.Helper()
	source := l.protocol.source(l.topic, kafka.SourceConfig{Logger: l.log.logger()})
	return l.run(t, l.inbox(t, l.Pool, effect, inbox.Config{}), source), source
}

// requireOthersGoOn sends messages to all partitions and requires that they
// take effect although the handlers still run and nothing of these is
// acknowledged.
func (l *longHandler) requireOthersGoOn(t *testing.T) {
	t.Helper()
	others := messages(len(l.sent), 20)
	for i, msg := range others {
		msg.Key = keyIn(i%longPartitions, longPartitions, "other")
	}
	l.send(t, others...)
	l.awaitEffects(t, len(l.sent)-longPartitions)
	l.requireHeld(t)
}

// requireHeld requires that the handlers still run, and that nothing from them
// on is acknowledged.
func (l *longHandler) requireHeld(t *testing.T) {
	t.Helper()
	require.Equal(t, len(l.sent)-longPartitions, l.count(t), "the handlers still run")
	require.Equal(t, len(l.sent), l.topic.left(t), "acknowledged past a handler that runs")
}

// requireHarmless requires, once the handlers were let go, that each message took
// effect once, without a failure.
func (l *longHandler) requireHarmless(t *testing.T, members ...*running) {
	t.Helper()
	await(t, "the committed offsets to be the ends", func() bool { return l.topic.left(t) == 0 })
	for _, m := range members {
		m.finish(t)
		require.Zero(t, m.in.Stats().FailedAttempts)
	}
	l.requireOneEffectEach(t, ids(l.sent))
	require.Empty(t, l.letters(t))
	require.Zero(t, l.topic.left(t), "and stays there")
}

// Case K5: a handler took longer than the session and the poll interval; its
// member was evicted, and the message came again, to be interrupted again, for
// ever (watermill#210). Heartbeats and polls do not wait for handlers: the
// member stays.
func TestLongHandler_MemberStays(t *testing.T) {
	t.Parallel()

	eachProtocol(t, func(t *testing.T, p protocol) {
		l := setupLong(t, p, directly)
		l.requireOthersGoOn(t)
		end := time.Now().Add(shortSession + 2*shortRebalance)
		await(t, "session and rebalance timeout to pass", func() bool { return time.Now().After(end) })
		l.requireHeld(t)
		l.requireOthersGoOn(t)

		l.letGo()
		l.requireHarmless(t, l.member)
		require.Equal(t, passed{delivered: len(l.sent), settled: len(l.sent)}, l.member.passed(), "each came once")
	})
}

// Case K5: another member joins meanwhile. It waited for ever for the partition
// of the handler that ran (spring-kafka#2128). Here it gets the partition, and
// the message, which waits for the transaction of the first one.
func TestLongHandler_RebalanceGoesOn(t *testing.T) {
	t.Parallel()

	eachProtocol(t, func(t *testing.T, p protocol) {
		l := setupLong(t, p, directly)
		second, source := l.second(t)
		end := time.Now().Add(2 * shortRebalance)
		await(t, "both members to have their share, and more than the rebalance timeout to pass", func() bool {
			return l.source.Stats().Partitions == longPartitions/2 && source.Stats().Partitions == longPartitions/2 && time.Now().After(end)
		})
		require.True(t, l.log.has("let go with deliveries still running"))
		l.requireOthersGoOn(t)

		l.letGo()
		l.requireHarmless(t, l.member, second)
		require.NotZero(t, second.in.Stats().Duplicates, "what was held came again")
	})
}

// Case K5: the member is evicted all the same, here because its heartbeats stand
// still in the network while its handlers run. They end after somebody else
// got their messages.
func TestLongHandler_EvictionIsHarmless(t *testing.T) {
	t.Parallel()

	eachProtocol(t, func(t *testing.T, p protocol) {
		var proxy *faultproxy.Proxy
		l := setupLong(t, p, func(tp *topic) []kgo.Opt {
			opt, through := tp.through(t)
			proxy = through
			return []kgo.Opt{opt}
		})
		proxy.Pause()
		second, source := l.second(t)
		await(t, "the other member to have all partitions", func() bool { return source.Stats().Partitions == longPartitions })
		l.requireOthersGoOn(t)
		require.Equal(t, longPartitions, l.source.Stats().Partitions, "the first one knows nothing of it")

		l.letGo()
		await(t, "what was held to be settled by the first one", func() bool { return l.member.passed().settled == longPartitions })
		proxy.Resume()
		await(t, "both members to have their share", func() bool {
			return l.source.Stats().Partitions == longPartitions/2 && source.Stats().Partitions == longPartitions/2
		})
		l.requireHarmless(t, l.member, second)
		require.EqualValues(t, longPartitions, second.in.Stats().Duplicates, "what was held came again")
	})
}

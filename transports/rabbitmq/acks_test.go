package rabbitmq_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/transports/transporttest"
)

// What is settled close together is acknowledged together, and nothing else is.
func TestSource_AcknowledgesTogether(t *testing.T) {
	t.Parallel()

	const messages = 100
	b := setup(t)
	for i := range messages {
		b.publish(t, text(fmt.Sprint(i)))
	}
	l := &line{}
	config := b.sourceConfig()
	config.Dial = l.dial
	r := run(t, config, transporttest.SinkConfig{})
	var out []*handler.Delivery
	for range messages {
		out = append(out, r.sink.Next(t))
	}
	for i := range out { // in pairs, the later one first
		out[i^1].Settled()
	}
	require.Eventually(t, func() bool {
		acks := l.acknowledged()
		return len(acks) > 0 && acks[len(acks)-1] == ack{messages, true}
	}, patience, tick)
	require.Less(t, len(l.acknowledged()), messages/2, "two a frame, at least")
	r.stop(t)
	b.requireEmpty(t)
}

// A message that takes long keeps no other from being acknowledged: else the
// broker, which has a whole prefetch out, would send no more.
func TestSource_SlowOneHoldsUpNoAcknowledgement(t *testing.T) {
	t.Parallel()

	const prefetch, messages = 10, 100
	b := setup(t)
	for i := range messages {
		b.publish(t, text(fmt.Sprint(i)))
	}
	l := &line{}
	config := b.sourceConfig()
	config.Dial, config.Prefetch = l.dial, prefetch
	r := run(t, config, transporttest.SinkConfig{})
	slow := r.next(t, "0")
	for range messages - 1 {
		r.sink.Next(t).Settled()
	}
	require.Eventually(t, func() bool { return len(l.acknowledged()) == messages-1 }, patience, tick)
	for _, a := range l.acknowledged() {
		require.False(t, a.multiple, "tag %d was acknowledged with the first, which is out", a.tag)
	}
	slow.Settled()
	r.stop(t)
	b.requireEmpty(t)
}

// The last of those that are out takes all others with it, without waiting for
// company that does not come.
func TestSource_LastOneIsAcknowledgedAtOnce(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.publish(t, text("a"), text("b"), text("c"))
	l := &line{}
	config := b.sourceConfig()
	config.Dial = l.dial
	r := run(t, config, transporttest.SinkConfig{})
	var out []*handler.Delivery
	for range 3 {
		out = append(out, r.sink.Next(t))
	}
	for _, d := range out {
		d.Settled()
	}
	acks := l.acknowledged()
	require.NotEmpty(t, acks)
	require.Equal(t, ack{3, true}, acks[len(acks)-1])
	r.stop(t)
	b.requireEmpty(t)
}

// What is settled just before the end is acknowledged before the channel
// closes, also when the drain time is over and another one is still out.
func TestSource_AcknowledgesBeforeTheEnd(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.publish(t, text("a"), text("b"))
	config := b.sourceConfig()
	config.Prefetch = 1000 // so that nothing is acknowledged for being much
	config.DrainTimeout = time.Nanosecond
	r := run(t, config, transporttest.SinkConfig{})
	slow := r.next(t, "a")
	later := r.next(t, "b")
	r.cancel()
	later.Settled()
	require.Error(t, r.ended(t), "a is still out")
	require.Equal(t, 1, b.ready(t))
	slow.Settled() // too late, and harmless
}

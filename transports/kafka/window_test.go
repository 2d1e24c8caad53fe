package kafka_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel/transports/kafka"
	"github.com/semel-go/semel/transports/transporttest"
)

// A slow record must not let everything behind it be fetched: the window
// bounds the memory, and what comes again after a crash.
func TestSource_WindowRecords(t *testing.T) {
	t.Parallel()

	eachBroker(t, 2, func(t *testing.T, b *testBundle) {
		config := b.config()
		config.WindowRecords = 10
		b.produce(t, 0, numbered(0, 10)...)
		r := start(t, b.sourceOf(config), transporttest.SinkConfig{})
		first := r.take(t, 10)
		r.awaitStats(t, func(s kafka.SourceStats) bool { return s.Held == 1 }, "the window is full")

		b.produce(t, 0, numbered(10, 30)...)
		settle(first[1:]) // all but the lowest: nothing can be committed
		r.sink.RequireQuiet(t)
		b.produce(t, 1, "another partition")
		require.Equal(t, []string{"another partition"}, payloads(r.take(t, 1)), "only the full one is held")
		require.Zero(t, r.source.Stats().Waiting, "nothing more was fetched")

		first[0].Settled()
		require.Equal(t, numbered(10, 30), payloads(r.take(t, 20)), "half of the window is free")
		b.awaitCommitted(t, 0, 10)
	})
}

// A window for each partition grew with their number: four of them held four
// times what one was allowed.
func TestSource_WindowIsShared(t *testing.T) {
	t.Parallel()

	b := setup(t, 4)
	config := b.config()
	config.WindowRecords = 40
	for p := range int32(4) {
		b.produce(t, p, numbered(0, 10)...)
	}
	r := start(t, b.sourceOf(config), transporttest.SinkConfig{})
	taken := r.take(t, 40)
	r.awaitStats(t, func(s kafka.SourceStats) bool { return s.Held == 4 }, "each share of ten is used")

	settle(taken)
	r.awaitStats(t, func(s kafka.SourceStats) bool { return s.Held == 0 }, "the commits let them go on")
}

func TestSource_WindowBytes(t *testing.T) {
	t.Parallel()

	b := setup(t, 1)
	config := b.config()
	config.WindowBytes = 10_000
	b.produce(t, 0, strings.Repeat("x", 6_000))
	r := start(t, b.sourceOf(config), transporttest.SinkConfig{})
	small := r.take(t, 1)
	b.produce(t, 0, strings.Repeat("y", 6_000))
	large := r.take(t, 1)
	r.awaitStats(t, func(s kafka.SourceStats) bool { return s.Held == 1 }, "the window is full")

	b.produce(t, 0, strings.Repeat("z", 20_000)) // larger than a whole window
	settle(small)
	b.awaitCommitted(t, 0, 1)
	r.sink.RequireQuiet(t) // 6,000 bytes are more than half
	settle(large)
	settle(r.take(t, 1))
	b.produce(t, 0, "after")
	settle(r.take(t, 1))
	b.awaitCommitted(t, 0, 4)
}

// A window that is full of settled records waits for nothing but the commit:
// it does not slow a busy partition down to one window an interval.
func TestSource_WindowCommitsEarly(t *testing.T) {
	t.Parallel()

	b := setup(t, 1)
	config := b.config()
	config.WindowRecords = 1
	b.produce(t, 0, "first")
	r := start(t, b.sourceOf(config), transporttest.SinkConfig{Settle: true})
	started := time.Now()
	const n = 40 // at two commits a second this would take 20 s
	for i := range n {
		b.produce(t, 0, "next")
		require.Eventually(t, func() bool { return len(r.sink.Arrived()) >= i+2 }, deadline, tick)
	}
	require.Less(t, time.Since(started), 10*time.Second)
}

// A pause of the window goes with the assignment (in the client it would
// outlive it), or the partition would stay silent for whoever gets it back.
func TestSource_WindowPauseEndsWithAssignment(t *testing.T) {
	t.Parallel()

	b := setup(t, 1)
	config := b.config()
	config.WindowRecords = 5
	b.produce(t, 0, numbered(0, 5)...)
	r := start(t, b.sourceOf(config, kgo.ClientID("expelled")), transporttest.SinkConfig{})
	out := r.take(t, 5)
	r.awaitStats(t, func(s kafka.SourceStats) bool { return s.Held == 1 }, "the window is full")
	b.expel(t, "expelled")

	require.Equal(t, payloads(out), payloads(r.take(t, 5)), "it is fetched again")
}

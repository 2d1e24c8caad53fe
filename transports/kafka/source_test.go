package kafka_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/transports/kafka"
	"github.com/semel-go/semel/transports/transporttest"
)

// What is returned comes again before what was not handed out yet, in order:
// the newer ones may be of its key.
func TestSource_ReturnedKeepsOrder(t *testing.T) {
	t.Parallel()

	b := setup(t, 1)
	b.produce(t, 0, numbered(0, 30)...)
	r := start(t, b.source(), transporttest.SinkConfig{Limit: 10})
	out := r.take(t, 10)
	r.sink.AwaitBlocked(t) // the eleventh is on its way
	for i := range out {
		out[(i*7)%10].Returned(errOnceMore)
	}

	var got []string
	for range 30 {
		d := r.sink.Next(t)
		got = append(got, string(d.Message.Payload))
		d.Settled()
	}
	require.Equal(t, "record 0010", got[0], "the one that was on its way")
	rest := append(numbered(0, 10), numbered(11, 30)...)
	require.Equal(t, rest, got[1:])
	b.awaitCommitted(t, 0, 30)
}

func TestSource_ReturnedAgainAndAgain(t *testing.T) {
	t.Parallel()

	b := setup(t, 1)
	b.produce(t, 0, "stubborn")
	r := start(t, b.source(), transporttest.SinkConfig{})
	for i := range 5 {
		d := r.sink.Next(t)
		require.Equal(t, i > 0, d.Message.Origin.Redelivered)
		d.Returned(errOnceMore)
	}
	r.sink.Next(t).Settled()
	b.awaitCommitted(t, 0, 1)
}

// A sink may call a function of a delivery twice by mistake; the second call
// must not acknowledge or return anything else.
func TestSource_EndedTwice(t *testing.T) {
	t.Parallel()

	b := setup(t, 1)
	b.produce(t, 0, "one", "two")
	var again []func()
	r := startSink(t, b.source(), sinkFunc(func(d *handler.Delivery) {
		d.Settled()
		d.Settled()
		d.Returned(errOnceMore)
		again = append(again, d.Settled)
	}))
	b.awaitCommitted(t, 0, 2)
	r()
	require.Len(t, again, 2)
	for _, f := range again {
		f()
	}
}

// Pausing keeps the partitions, stops deliveries and fetches, and is no
// business of the window.
func TestSource_Pause(t *testing.T) {
	t.Parallel()

	eachBroker(t, 2, func(t *testing.T, b *testBundle) {
		config := b.config()
		config.WindowRecords = 10
		source := b.sourceOf(config)
		r := start(t, source, transporttest.SinkConfig{Limit: 1})
		b.produce(t, 0, numbered(0, 10)...)
		first := r.sink.Next(t)
		r.awaitStats(t, func(s kafka.SourceStats) bool { return s.Held == 1 }, "the window is full")
		r.sink.AwaitBlocked(t)
		source.Pause()
		first.Settled()
		second := r.sink.Next(t) // it was inside Deliver already
		second.Settled()
		waiting := source.Stats().Waiting
		b.produce(t, 1, "not yet")
		r.sink.RequireQuiet(t)
		require.Equal(t, waiting, source.Stats().Waiting, "nothing more was fetched")
		b.awaitCommitted(t, 0, 2) // acknowledging goes on
		require.Equal(t, 2, source.Stats().Partitions)
		require.True(t, source.Stats().Paused)

		source.Resume()
		for range 9 {
			r.sink.Next(t).Settled()
		}
		b.awaitCommitted(t, 0, 10)
		b.awaitCommitted(t, 1, 1)
		r.awaitStats(t, func(s kafka.SourceStats) bool { return s.Held == 0 && !s.Paused }, "all is open again")
	})
}

// A member that is paused when it joins gets nothing from the partitions it is
// given, also after a rebalance.
func TestSource_PausedThroughRebalance(t *testing.T) {
	t.Parallel()

	b := setup(t, 4)
	for p := range int32(4) {
		b.produce(t, p, fmt.Sprint(p))
	}
	source := b.source()
	source.Pause()
	one := start(t, source, transporttest.SinkConfig{})
	one.awaitStats(t, func(s kafka.SourceStats) bool { return s.Partitions == 4 }, "it has all partitions")
	two := start(t, b.source(), transporttest.SinkConfig{Settle: true})
	two.awaitStats(t, func(s kafka.SourceStats) bool { return s.Partitions == 2 }, "two have moved")
	require.Eventually(t, func() bool { return len(two.sink.Arrived()) == 2 }, deadline, tick)
	two.stop(t)
	one.awaitStats(t, func(s kafka.SourceStats) bool { return s.Partitions == 4 }, "they are back")
	one.sink.RequireQuiet(t)

	source.Resume()
	one.take(t, 2)
}

func TestSource_RunTwice(t *testing.T) {
	t.Parallel()

	b := setup(t, 1)
	b.produce(t, 0, "one")
	source := b.source()
	r := start(t, source, transporttest.SinkConfig{})
	settle(r.take(t, 1))
	require.ErrorContains(t, source.Run(t.Context(), r.sink), "it runs already")
	r.stop(t)

	b.produce(t, 0, "two")
	again := start(t, source, transporttest.SinkConfig{})
	require.Equal(t, []string{"two"}, payloads(again.take(t, 1)), "one after the other is fine")
}

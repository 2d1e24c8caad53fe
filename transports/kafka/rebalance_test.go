package kafka_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/transports/kafka"
	"github.com/semel-go/semel/transports/transporttest"
)

// byPartition sorts deliveries.
func byPartition(deliveries []*handler.Delivery) map[int32][]*handler.Delivery {
	sorted := map[int32][]*handler.Delivery{}
	for _, d := range deliveries {
		p := d.Message.Origin.Partition
		sorted[p] = append(sorted[p], d)
	}
	return sorted
}

// newcomer makes a member that takes exactly one of four partitions: the two
// of another topic are its own, so that three for each is fair.
func (b *testBundle) newcomer(t *testing.T, opts ...kgo.Opt) *kafka.Source {
	t.Helper()
	config := b.config()
	config.Topics = append(config.Topics, b.newTopic(t, 2, nil))
	return b.sourceOf(config, opts...)
}

// Case K4: one of four partitions was revoked with work in flight, and the
// work of the other three was lost with it (PostHog#80897; franz-go#320).
func TestSource_OnePartitionRevoked(t *testing.T) {
	t.Parallel()

	eachBroker(t, 4, func(t *testing.T, b *testBundle) {
		for p := range int32(4) {
			b.produce(t, p, numbered(0, 10)...)
		}
		one := start(t, b.source(), transporttest.SinkConfig{})
		out := byPartition(one.take(t, 40))
		two := start(t, b.newcomer(t), transporttest.SinkConfig{Settle: true})

		gone := awaitRevoked(t, out)
		require.Len(t, gone, 1, "one partition moves")
		p := gone[0]
		for other := range int32(4) {
			b.produce(t, other, "meanwhile")
		}
		for range 3 { // the others go on while one drains
			d := one.sink.Next(t)
			require.NotEqual(t, p, d.Message.Origin.Partition)
			out[d.Message.Origin.Partition] = append(out[d.Message.Origin.Partition], d)
		}
		require.Empty(t, two.sink.Arrived(), "the partition is drained before it goes")

		settle(out[p][:7]) // not in order, and one of them is given back
		settle(out[p][8:])
		out[p][7].Returned(errOnceMore)

		require.Eventually(t, func() bool { return len(two.sink.Arrived()) == 4 }, deadline, tick)
		for i, m := range two.sink.Arrived() {
			require.Equal(t, p, m.Origin.Partition)
			require.EqualValues(t, 7+i, m.Origin.Offset, "it goes on where the work in flight began")
		}
		for other, deliveries := range out {
			if other != p {
				require.False(t, isClosed(deliveries[0].Revoked), "partition %d stays", other)
				settle(deliveries)
			}
		}
		one.stop(t)
		two.stop(t)
		for other := range int32(4) {
			require.EqualValues(t, 11, b.committed(t, other), "partition %d", other)
		}
		require.Len(t, one.sink.Arrived(), 43, "nothing came twice")
	})
}

// awaitRevoked waits for the first partitions whose Revoked channel is closed.
func awaitRevoked(t *testing.T, out map[int32][]*handler.Delivery) []int32 {
	t.Helper()
	var gone []int32
	require.Eventually(t, func() bool {
		gone = gone[:0]
		for p, deliveries := range out {
			if isClosed(deliveries[0].Revoked) {
				gone = append(gone, p)
			}
		}
		return len(gone) > 0
	}, deadline, tick)
	return gone
}

// Deliveries that do not end in time are abandoned: the partition goes, their
// records come again there, and what becomes of them here changes nothing.
func TestSource_RevokedAndAbandoned(t *testing.T) {
	t.Parallel()

	b := setup(t, 4)
	for p := range int32(4) {
		b.produce(t, p, numbered(0, 10)...)
	}
	var logged log
	config := b.config()
	config.DrainTimeout = tick
	config.Logger = logged.logger()
	one := start(t, b.sourceOf(config), transporttest.SinkConfig{})
	out := byPartition(one.take(t, 40))
	for _, deliveries := range out {
		settle(deliveries[:5])
	}
	two := start(t, b.newcomer(t), transporttest.SinkConfig{Settle: true})
	p := awaitRevoked(t, out)[0]
	require.Eventually(t, func() bool { return len(two.sink.Arrived()) == 5 }, deadline, tick)
	logged.await(t, "let go with deliveries still running")
	require.Len(t, flagged(two.sink.Arrived()), 5, "they may still be running")
	b.awaitCommitted(t, p, 10)

	settle(out[p][5:9]) // late, and out of order
	out[p][9].Returned(errOnceMore)
	for other, deliveries := range out {
		if other != p {
			settle(deliveries[5:])
		}
	}
	one.stop(t)
	two.stop(t)
	require.Len(t, one.sink.Arrived(), 40, "what came back after the partition went is not ours any more")
	require.EqualValues(t, 10, b.committed(t, p))
}

// A sink that blocks for long must not hold a rebalance up, nor cost the
// membership (spring-kafka#2128).
func TestSource_RebalanceWhileDeliverBlocks(t *testing.T) {
	t.Parallel()

	b := setup(t, 4)
	for p := range int32(4) {
		b.produce(t, p, numbered(0, 10)...)
	}
	one := start(t, b.source(), transporttest.SinkConfig{Limit: 1})
	first := one.sink.Next(t)
	one.sink.AwaitBlocked(t)
	two := start(t, b.source(), transporttest.SinkConfig{Settle: true})

	require.Eventually(t, func() bool {
		if isClosed(first.Revoked) {
			first.Settled() // what runs finishes; what waits in Deliver does not start
		}
		return len(two.sink.Arrived()) >= 19
	}, deadline, tick)
	one.sink.AwaitBlocked(t) // still, with one of those that stayed
	require.Equal(t, 2, one.source.Stats().Partitions)
	require.NoError(t, one.source.Stats().LastError)
	first.Settled()
	for range 2 { // and these go on
		one.sink.Next(t).Settled()
	}
}

// A member that the group expelled drops its partitions, joins again, and gets
// what it had not finished.
func TestSource_Lost(t *testing.T) {
	t.Parallel()

	eachBroker(t, 1, func(t *testing.T, b *testBundle) {
		b.produce(t, 0, numbered(0, 10)...)
		r := start(t, b.source(kgo.ClientID("expelled")), transporttest.SinkConfig{})
		out := r.take(t, 10)
		settle(out[:5])
		b.awaitCommitted(t, 0, 5)
		b.expel(t, "expelled")
		awaitRevoked(t, map[int32][]*handler.Delivery{0: out})

		again := r.take(t, 5)
		require.Equal(t, numbered(5, 10), payloads(again))
		require.Equal(t, offsets(5, 10), flagged(r.sink.Arrived()), "the group cannot tell it from one that died")
		settle(out[5:]) // of an assignment that is over
		settle(again[:2])
		r.cancel()
		for _, d := range again[2:] {
			d.Returned(errOnceMore)
		}
		require.NoError(t, r.await(t))
		require.EqualValues(t, 7, b.committed(t, 0))
	})
}

// Two partitions come and go again and again while work is in flight; nothing
// is lost, and no pause sticks.
func TestSource_Churn(t *testing.T) {
	t.Parallel()

	const partitions, each = 6, 300
	b := setup(t, partitions)
	config := b.config()
	config.WindowRecords = 20 // pauses come and go as well
	one := start(t, b.sourceOf(config), transporttest.SinkConfig{Settle: true})
	seen := map[string]bool{}
	note := func(sinks ...*transporttest.Sink) {
		for _, s := range sinks {
			for _, m := range s.Arrived() {
				seen[m.Origin.Position] = true
			}
		}
	}
	for round := range 5 {
		for p := range int32(partitions) {
			b.produce(t, p, numbered(round*each/10, (round+1)*each/10)...)
		}
		two := start(t, b.sourceOf(config), transporttest.SinkConfig{Settle: true})
		two.awaitStats(t, func(s kafka.SourceStats) bool { return s.Partitions == partitions/2 }, "the newcomer gets its share")
		for p := range int32(partitions) {
			b.produce(t, p, numbered(0, each/10)...)
		}
		two.stop(t)
		note(two.sink)
		one.awaitStats(t, func(s kafka.SourceStats) bool { return s.Partitions == partitions }, "the other gets all back")
	}
	const total = partitions * 5 * 2 * each / 10
	require.Eventually(t, func() bool { note(one.sink); return len(seen) == total }, deadline, tick)
	one.stop(t)
	for p := range int32(partitions) {
		require.EqualValues(t, total/partitions, b.committed(t, p))
	}
}

// An eager balancer, which revokes everything at each rebalance.
func TestSource_EagerBalancer(t *testing.T) {
	t.Parallel()

	b := setup(t, 4)
	eager := kgo.Balancers(kgo.RangeBalancer())
	for p := range int32(4) {
		b.produce(t, p, numbered(0, 10)...)
	}
	one := start(t, b.source(eager), transporttest.SinkConfig{})
	out := one.take(t, 40)
	two := start(t, b.source(eager), transporttest.SinkConfig{Settle: true})
	for _, d := range out {
		require.Eventually(t, func() bool { return isClosed(d.Revoked) }, deadline, tick)
	}
	settle(out)
	two.awaitStats(t, func(s kafka.SourceStats) bool { return s.Partitions == 2 }, "the newcomer gets its share")
	one.awaitStats(t, func(s kafka.SourceStats) bool { return s.Partitions == 2 }, "the other keeps its own")
	for p := range int32(4) {
		b.produce(t, p, "later")
	}
	settle(one.take(t, 2))
	require.Eventually(t, func() bool { return len(two.sink.Arrived()) == 2 }, deadline, tick)
	require.Len(t, one.sink.Arrived(), 42, "nothing came twice")
}

// The group protocol in which the broker assigns (KIP-848).
func TestSource_ServerSideBalancer(t *testing.T) {
	t.Parallel()

	eachBroker(t, 4, func(t *testing.T, b *testBundle) {
		for p := range int32(4) {
			b.produce(t, p, numbered(0, 10)...)
		}
		one := start(t, b.source(kgo.ServerSideBalancer()), transporttest.SinkConfig{})
		out := byPartition(one.take(t, 40))
		two := start(t, b.source(kgo.ServerSideBalancer()), transporttest.SinkConfig{Settle: true})
		for _, p := range awaitRevoked(t, out) {
			settle(out[p])
		}
		two.awaitStats(t, func(s kafka.SourceStats) bool { return s.Partitions == 2 }, "the newcomer gets its share")
		for p := range int32(4) {
			b.produce(t, p, "later")
		}
		require.Eventually(t, func() bool { return len(two.sink.Arrived()) == 2 }, deadline, tick)
		for _, deliveries := range out {
			settle(deliveries)
		}
		settle(one.take(t, 2))
		one.stop(t)
		two.stop(t)
		require.Len(t, one.sink.Arrived(), 42, "nothing came twice")
		for p := range int32(4) {
			require.EqualValues(t, 11, b.committed(t, p))
		}
	})
}

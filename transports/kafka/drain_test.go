package kafka_test

import (
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/transports/kafka"
	"github.com/semel-go/semel/transports/transporttest"
)

// Case K6: SIGTERM with 1000 in flight made finished work come again
// (watermill#446; parallel-consumer#826).
func TestSource_DrainFinishes(t *testing.T) {
	t.Parallel()

	eachBroker(t, 4, func(t *testing.T, b *testBundle) {
		for p := range int32(4) {
			b.produce(t, p, numbered(0, 300)...)
		}
		r := start(t, b.source(), transporttest.SinkConfig{Limit: 1000})
		out := r.take(t, 1000)
		r.sink.AwaitBlocked(t)
		r.cancel()
		slices.Reverse(out)
		var workers sync.WaitGroup
		for half := range slices.Chunk(out, 100) {
			workers.Go(func() { settle(half) })
		}
		workers.Wait()
		require.NoError(t, r.await(t))

		next := start(t, b.source(), transporttest.SinkConfig{})
		rest := next.take(t, 200)
		settle(rest)
		next.stop(t)
		finished := map[string]bool{}
		for _, d := range out {
			finished[d.Message.Origin.Position] = true
		}
		for _, d := range rest {
			require.NotContains(t, finished, d.Message.Origin.Position, "it was finished before")
		}
	})
}

// Case K6: a process that dies loses nothing: what was not committed comes
// again, to whoever has the partition next.
func TestSource_DeathLosesNothing(t *testing.T) {
	t.Parallel()

	eachBroker(t, 2, func(t *testing.T, b *testBundle) {
		for p := range int32(2) {
			b.produce(t, p, numbered(0, 100)...)
		}
		var n network
		dead := start(t, b.source(n.opt()), transporttest.SinkConfig{})
		out := dead.take(t, 200)
		var unsettled []string
		for i, d := range out {
			if i%10 == 3 {
				unsettled = append(unsettled, d.Message.Origin.Position)
				continue
			}
			d.Settled()
		}
		n.cut()

		heir := start(t, b.source(), transporttest.SinkConfig{Settle: true})
		require.Eventually(t, func() bool {
			got := map[string]bool{}
			for _, m := range heir.sink.Arrived() {
				got[m.Origin.Position] = true
			}
			return !slices.ContainsFunc(unsettled, func(p string) bool { return !got[p] })
		}, deadline, tick)
		heir.stop(t)
		for p := range int32(2) {
			require.EqualValues(t, 100, b.committed(t, p))
		}
	})
}

// Run returns soon although the broker is gone for good.
func TestSource_StopWithoutBroker(t *testing.T) {
	t.Parallel()

	b := setup(t, 1)
	b.produce(t, 0, "record")
	var n network
	r := start(t, b.source(n.opt()), transporttest.SinkConfig{})
	d := r.sink.Next(t)
	n.cut()
	r.cancel()
	d.Settled()
	require.NoError(t, r.await(t))
}

// The group outlives what happens while a source drains: a rebalance then
// gives it nothing to do any more.
func TestSource_RebalanceWhileDraining(t *testing.T) {
	t.Parallel()

	b := setup(t, 4)
	for p := range int32(4) {
		b.produce(t, p, numbered(0, 10)...)
	}
	one := start(t, b.source(), transporttest.SinkConfig{})
	out := one.take(t, 40)
	one.cancel()
	two := start(t, b.source(), transporttest.SinkConfig{Settle: true})
	awaitRevoked(t, byPartition(out))
	settle(out)
	require.NoError(t, one.await(t))
	two.awaitStats(t, func(s kafka.SourceStats) bool { return s.Partitions == 4 }, "the other gets all")
	for p := range int32(4) {
		b.produce(t, p, "later")
	}
	require.Eventually(t, func() bool { return len(two.sink.Arrived()) == 4 }, deadline, tick)
	two.stop(t)
	require.Len(t, two.sink.Arrived(), 4, "finished work does not come again")
}

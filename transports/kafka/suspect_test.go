package kafka_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/transports/kafka"
	"github.com/semel-go/semel/transports/transporttest"
)

const (
	saysRunning = "semel running"
	saysDrained = "semel drained"
)

// owner returns what the group's commit says about the partition's last owner.
func (b *testBundle) owner(t *testing.T, partition int32) string {
	t.Helper()
	offsets, err := b.admin.FetchOffsets(t.Context(), b.group)
	require.NoError(t, err)
	o, ok := offsets.Lookup(b.topic, partition)
	require.True(t, ok, "nothing is committed")
	return o.Metadata
}

// flagged returns the offsets of those that may have been in flight at a crash.
func flagged(messages []*handler.Message) []int64 {
	var offsets []int64
	for _, m := range messages {
		if m.Origin.Redelivered {
			offsets = append(offsets, m.Origin.Offset)
		}
	}
	return offsets
}

func offsets(from, to int64) []int64 {
	var all []int64
	for o := from; o < to; o++ {
		all = append(all, o)
	}
	return all
}

// die takes n records, settles the first few, and ends as a process that is
// killed does.
func (b *testBundle) die(t *testing.T, n, settled int, config kafka.SourceConfig, opts ...kgo.Opt) {
	t.Helper()
	var way network
	r := start(t, b.sourceOf(config, append(opts, way.opt())...), transporttest.SinkConfig{})
	out := r.take(t, n)
	require.Equal(t, saysRunning, b.owner(t, 0), "the broker knows before the first is handed out")
	settle(out[:settled])
	if settled > 0 {
		b.awaitCommitted(t, 0, out[settled].Message.Origin.Offset)
	}
	way.cut()
}

// Case P1: which records can have been in flight when a process died is known
// from the commit alone: as many as its window allowed, and not one more.
func TestSource_SuspectsAfterDeath(t *testing.T) {
	t.Parallel()

	eachBroker(t, 1, func(t *testing.T, b *testBundle) {
		const total, window = 1100, 10
		const reach = window + 1000 - 1 // the last poll may overshoot
		b.produce(t, 0, numbered(0, total)...)
		config := b.config()
		config.WindowRecords = window
		b.die(t, 10, 5, config)

		heir := start(t, b.sourceOf(config), transporttest.SinkConfig{Settle: true})
		b.awaitCommitted(t, 0, total)
		require.Equal(t, offsets(5, 5+reach), flagged(heir.sink.Arrived()))
		heir.stop(t)
		require.Equal(t, saysDrained, b.owner(t, 0))

		b.produce(t, 0, "after")
		next := start(t, b.sourceOf(config), transporttest.SinkConfig{})
		require.False(t, next.take(t, 1)[0].Message.Origin.Redelivered)
	})
}

// Records that were written after the death were not in flight at it.
func TestSource_SuspectsEndWithTheLog(t *testing.T) {
	t.Parallel()

	b := setup(t, 1)
	b.produce(t, 0, numbered(0, 10)...)
	b.die(t, 10, 0, b.config())
	heir := start(t, b.source(), transporttest.SinkConfig{})
	heir.take(t, 10)
	b.produce(t, 0, numbered(10, 15)...)
	heir.take(t, 5)

	require.Equal(t, offsets(0, 10), flagged(heir.sink.Arrived()))
}

// Offsets have gaps: what was in flight may lie far behind the commit.
func TestSource_SuspectsBeyondGaps(t *testing.T) {
	t.Parallel()

	eachBroker(t, 1, func(t *testing.T, b *testBundle) {
		client, err := kgo.NewClient(kgo.SeedBrokers(b.brokers...), kgo.TransactionalID(b.group), kgo.DefaultProduceTopic(b.topic))
		require.NoError(t, err)
		defer client.Close()
		transaction := func(outcome kgo.TransactionEndTry, values []string) {
			t.Helper()
			require.NoError(t, client.BeginTransaction())
			for _, v := range values {
				client.Produce(t.Context(), kgo.StringRecord(v), nil)
			}
			require.NoError(t, client.Flush(t.Context()))
			require.NoError(t, client.EndTransaction(t.Context(), outcome))
		}
		const gap = 1500
		transaction(kgo.TryCommit, numbered(0, 1))
		transaction(kgo.TryAbort, numbered(0, gap))
		transaction(kgo.TryCommit, numbered(1, 5))
		config := b.config()
		config.WindowRecords = 10
		b.die(t, 5, 0, config)

		heir := start(t, b.sourceOf(config), transporttest.SinkConfig{})
		out := heir.take(t, 5)
		require.Greater(t, out[4].Message.Origin.Offset, int64(gap))
		require.Len(t, flagged(heir.sink.Arrived()), 5)
	})
}

// An owner that stops before it has met all suspects leaves them to the next:
// that it drained itself says nothing about them.
func TestSource_SuspectsOutliveADrain(t *testing.T) {
	t.Parallel()

	b := setup(t, 1)
	b.produce(t, 0, numbered(0, 10)...)
	b.die(t, 10, 0, b.config())
	heir := start(t, b.source(), transporttest.SinkConfig{Limit: 4})
	out := heir.take(t, 4)
	settle(out[:2])
	heir.sink.AwaitBlocked(t)
	heir.cancel()
	heir.sink.ReturnAll(errOnceMore)
	require.NoError(t, heir.await(t))
	require.Equal(t, saysRunning, b.owner(t, 0))

	next := start(t, b.source(), transporttest.SinkConfig{})
	settle(next.take(t, 10-int(b.committed(t, 0))))
	require.Len(t, flagged(next.sink.Arrived()), len(next.sink.Arrived()))
	next.stop(t)
	require.Equal(t, saysDrained, b.owner(t, 0))
}

// A static member that was killed is back before its session ends; the broker
// has told nobody that it was away.
func TestSource_SuspectsOfStaticMember(t *testing.T) {
	t.Parallel()

	eachBroker(t, 1, func(t *testing.T, b *testBundle) {
		static := kgo.InstanceID("shipping-1")
		b.produce(t, 0, numbered(0, 10)...)
		b.die(t, 10, 5, b.config(), static)
		again := start(t, b.source(static), transporttest.SinkConfig{})
		out := again.take(t, 5)
		require.Equal(t, offsets(5, 10), flagged(again.sink.Arrived()))
		settle(out)
		again.stop(t)

		b.produce(t, 0, "after")
		next := start(t, b.source(static), transporttest.SinkConfig{})
		require.False(t, next.take(t, 1)[0].Message.Origin.Redelivered)
	})
}

// The same in the protocol in which the broker assigns (KIP-848).
func TestSource_SuspectsServerSide(t *testing.T) {
	t.Parallel()

	b := setup(t, 1, kfake.BrokerConfigs(map[string]string{"group.consumer.session.timeout.ms": "2000"}))
	b.produce(t, 0, numbered(0, 10)...)
	b.die(t, 10, 5, b.config(), kgo.ServerSideBalancer())
	heir := start(t, b.source(kgo.ServerSideBalancer()), transporttest.SinkConfig{})
	heir.take(t, 5)

	require.Equal(t, offsets(5, 10), flagged(heir.sink.Arrived()))
}

// A new group has no commit that could say anything; it is made before the
// first record is handed out, where the group begins.
func TestSource_SuspectsOfNewGroup(t *testing.T) {
	t.Parallel()

	eachBroker(t, 1, func(t *testing.T, b *testBundle) {
		b.produce(t, 0, numbered(0, 5)...)
		b.deleteBefore(t, 0, 2)
		var way network
		dead := start(t, b.source(way.opt()), transporttest.SinkConfig{})
		dead.take(t, 1)
		require.EqualValues(t, 2, b.committed(t, 0))
		require.Equal(t, saysRunning, b.owner(t, 0))
		dead.take(t, 2)
		require.Empty(t, flagged(dead.sink.Arrived()))
		way.cut()

		heir := start(t, b.source(), transporttest.SinkConfig{})
		heir.take(t, 3)
		require.Equal(t, offsets(2, 5), flagged(heir.sink.Arrived()))
	})
	t.Run("AtEnd", func(t *testing.T) {
		t.Parallel()
		b := setup(t, 1)
		atEnd := kgo.ConsumeStartOffset(kgo.NewOffset().AtEnd())
		b.produce(t, 0, "old")
		var way network
		dead := start(t, b.source(atEnd, way.opt()), transporttest.SinkConfig{})
		require.Eventually(t, func() bool { // nobody tells when it has found the end
			b.produce(t, 0, "new")
			return len(dead.sink.Arrived()) > 0
		}, deadline, tick)
		first := dead.sink.Arrived()[0].Origin.Offset
		require.EqualValues(t, first, b.committed(t, 0))
		way.cut()

		heir := start(t, b.source(atEnd), transporttest.SinkConfig{})
		d := heir.sink.Next(t)
		require.Equal(t, first, d.Message.Origin.Offset, "what was in flight is not behind the end")
		require.True(t, d.Message.Origin.Redelivered)
	})
}

// What another client or a tool has written says nothing about a crash.
func TestSource_SuspectsNobodyElses(t *testing.T) {
	t.Parallel()

	for i, metadata := range []string{"", "consumer-shipping-1-2f0c", saysDrained, saysRunning + " since Monday"} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()

			b := setup(t, 1)
			b.produce(t, 0, numbered(0, 5)...)
			offsets := kadm.Offsets{}
			offsets.Add(kadm.Offset{Topic: b.topic, Partition: 0, At: 2, LeaderEpoch: -1, Metadata: metadata})
			require.NoError(t, b.admin.CommitAllOffsets(t.Context(), b.group, offsets))
			r := start(t, b.source(), transporttest.SinkConfig{})
			r.take(t, 3)

			require.Empty(t, flagged(r.sink.Arrived()))
			require.Equal(t, saysRunning, b.owner(t, 0))
			require.EqualValues(t, 2, b.committed(t, 0))
		})
	}
}

// Nothing is handed out before the broker has answered that it knows.
func TestSource_WaitsToBeKnown(t *testing.T) {
	t.Parallel()

	b := setup(t, 1)
	b.produce(t, 0, numbered(0, 5)...)
	release := make(chan struct{})
	b.cluster.ControlKey(int16(kmsg.OffsetCommit), func(kmsg.Request) (kmsg.Response, error, bool) {
		b.cluster.SleepControl(func() { <-release })
		return nil, nil, false
	})
	r := start(t, b.source(), transporttest.SinkConfig{})
	r.awaitStats(t, func(s kafka.SourceStats) bool { return s.Waiting == 5 }, "all are fetched")
	r.sink.RequireQuiet(t)

	close(release)
	require.Empty(t, flagged([]*handler.Message{r.take(t, 1)[0].Message}))
}

// Who drains leaves no suspects, also where it settled nothing.
func TestSource_DrainedLeavesNoSuspects(t *testing.T) {
	t.Parallel()

	eachBroker(t, 1, func(t *testing.T, b *testBundle) {
		b.produce(t, 0, numbered(0, 10)...)
		for _, settled := range []int{5, 0, 5} {
			r := start(t, b.source(), transporttest.SinkConfig{})
			out := r.take(t, 10-int(max(b.committed(t, 0), 0)))
			require.Empty(t, flagged(r.sink.Arrived()))
			require.Equal(t, saysRunning, b.owner(t, 0))
			settle(out[:settled])
			r.cancel()
			for _, d := range out[settled:] {
				d.Returned(errOnceMore)
			}
			require.NoError(t, r.await(t))
			require.Equal(t, saysDrained, b.owner(t, 0))
		}
		require.EqualValues(t, 10, b.committed(t, 0))
	})
}

// Who gives a partition back in peace leaves no suspects either.
func TestSource_RevokedLeavesNoSuspects(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name  string
		opt   kgo.Opt
		again int // come again to the one that was there
	}{
		{name: "Cooperative", opt: kgo.Balancers(kgo.CooperativeStickyBalancer())},
		{name: "Eager", opt: kgo.Balancers(kgo.RangeBalancer()), again: 10},
		{name: "ServerSide", opt: kgo.ServerSideBalancer()},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			eachBroker(t, 4, func(t *testing.T, b *testBundle) {
				for p := range int32(4) {
					b.produce(t, p, numbered(0, 10)...)
				}
				one := start(t, b.source(tt.opt), transporttest.SinkConfig{})
				out := byPartition(one.take(t, 40))
				two := start(t, b.source(tt.opt), transporttest.SinkConfig{})
				require.Eventually(t, func() bool {
					for p, deliveries := range out {
						if isClosed(deliveries[0].Revoked) {
							settle(deliveries[:5])
							for _, d := range deliveries[5:] {
								d.Returned(errOnceMore)
							}
							delete(out, p)
						}
					}
					return len(two.sink.Arrived()) == 10 && len(one.sink.Arrived()) == 40+tt.again
				}, deadline, tick)

				require.Empty(t, flagged(one.sink.Arrived()))
				require.Empty(t, flagged(two.sink.Arrived()))
			})
		})
	}
}

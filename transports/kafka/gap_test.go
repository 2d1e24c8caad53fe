package kafka_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel/transports/transporttest"
)

// Cases K10 and K15: gaps that aborted transactions and control records leave
// made consumers wait for offsets that never come, and a commit stuck one short
// of the end (parallel-consumer#329, #409; franz-go#1042).
func TestSource_Transactions(t *testing.T) {
	t.Parallel()

	eachBroker(t, 1, func(t *testing.T, b *testBundle) {
		client, err := kgo.NewClient(kgo.SeedBrokers(b.brokers...), kgo.TransactionalID(b.group), kgo.DefaultProduceTopic(b.topic))
		require.NoError(t, err)
		defer client.Close()
		transaction := func(outcome kgo.TransactionEndTry, values ...string) {
			t.Helper()
			require.NoError(t, client.BeginTransaction())
			for _, v := range values {
				require.NoError(t, client.ProduceSync(t.Context(), kgo.StringRecord(v)).FirstErr())
			}
			require.NoError(t, client.EndTransaction(t.Context(), outcome))
		}
		transaction(kgo.TryAbort, "aborted")
		transaction(kgo.TryCommit, numbered(0, 3)...)
		transaction(kgo.TryAbort, numbered(100, 110)...)
		transaction(kgo.TryCommit, numbered(3, 5)...)
		transaction(kgo.TryAbort, "aborted at the end")

		const end = 1 + 3 + 10 + 2 + 1 + 5  // the records, and a marker for each transaction
		require.Eventually(t, func() bool { // the markers are written some time after the answer
			ends, err := b.admin.ListEndOffsets(t.Context(), b.topic)
			last, _ := ends.Lookup(b.topic, 0)
			return err == nil && last.Offset == end
		}, deadline, tick)
		r := start(t, b.source(), transporttest.SinkConfig{})
		out := r.take(t, 5)
		require.Equal(t, numbered(0, 5), payloads(out))
		b.awaitCommitted(t, 0, out[0].Message.Origin.Offset)
		settle(out)
		b.awaitCommitted(t, 0, end)
		r.sink.RequireQuiet(t)
	})
}

// Case K10: compaction leaves gaps too.
func TestSource_CompactedTopic(t *testing.T) {
	t.Parallel()

	b := setup(t, 1)
	compact, fast := "compact", "0"
	b.topic = b.newTopic(t, 1, map[string]*string{"cleanup.policy": &compact, "min.cleanable.dirty.ratio": &fast, "segment.ms": &fast})
	for i := range 50 {
		r := &kgo.Record{Topic: b.topic, Key: fmt.Appendf(nil, "key %d", i%5), Value: fmt.Appendf(nil, "value %d", i)}
		require.NoError(t, b.client.ProduceSync(t.Context(), r).FirstErr())
	}
	b.cluster.Compact()

	r := start(t, b.source(), transporttest.SinkConfig{})
	first := r.sink.Next(t)
	require.Greater(t, first.Message.Origin.Offset, int64(1), "the beginning was compacted away")
	first.Settled()
	for {
		d := r.sink.Next(t)
		d.Settled()
		if d.Message.Origin.Offset == 49 {
			break
		}
	}
	b.awaitCommitted(t, 0, 50)
	require.Less(t, len(r.sink.Arrived()), 50)
	require.Zero(t, r.source.Stats().RecordsLost, "a gap is no loss")
}

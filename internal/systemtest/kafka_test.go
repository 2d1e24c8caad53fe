package systemtest_test

import (
	"context"
	"crypto/rand"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/internal/services"
	"github.com/semel-go/semel/transports/kafka"
)

// largestRecord is above every payload that a test sends.
const largestRecord = 20 << 20

// topic is a topic and a group of the test's own on the real broker.
type topic struct {
	brokers     []string
	name, group string
	client      *kgo.Client
	admin       *kadm.Client
	publisher   *kafka.Publisher
}

func newTopic(t *testing.T, p place) *topic {
	t.Helper()
	tp := &topic{brokers: services.Kafka(t), name: "semel-systemtest-" + rand.Text(), group: "semel-systemtest-" + rand.Text()}
	client, err := kgo.NewClient(kgo.SeedBrokers(tp.brokers...), kgo.DefaultProduceTopic(tp.name), kgo.ProducerBatchMaxBytes(largestRecord))
	require.NoError(t, err)
	t.Cleanup(client.Close)
	tp.client, tp.admin, tp.publisher = client, kadm.NewClient(client), kafka.NewPublisher(client)

	configs := map[string]*string{"max.message.bytes": kadm.StringPtr("20971520")}
	require.NoError(t, services.CreateTopic(t.Context(), tp.admin, tp.name, max(p.partitions, 1), configs))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_, err := tp.admin.DeleteTopic(ctx, tp.name)
		require.NoError(t, err)
		_, _ = tp.admin.DeleteGroups(ctx, tp.group) // a group that never was is no failure
	})
	return tp
}

func (tp *topic) publish(ctx context.Context, msgs ...*handler.Message) error {
	return errors.Join(tp.publisher.Publish(ctx, msgs)...)
}

func (tp *topic) recipe() recipe {
	return recipe{Kind: onKafka, Place: tp.name, Brokers: tp.brokers, Group: tp.group, Session: 6 * time.Second}
}

// left is how many records lie behind the committed offsets.
func (tp *topic) left(t *testing.T) int {
	t.Helper()
	ends, err := tp.admin.ListEndOffsets(t.Context(), tp.name)
	require.NoError(t, err)
	committed := tp.committed(t)
	left := 0
	ends.Each(func(end kadm.ListedOffset) { left += int(end.Offset - committed[end.Partition]) })
	return left
}

// committed returns the group's offset in each partition, 0 where it has none.
func (tp *topic) committed(t *testing.T) map[int32]int64 {
	t.Helper()
	offsets, err := tp.admin.FetchOffsets(t.Context(), tp.group)
	if !errors.Is(err, kerr.GroupIDNotFound) {
		require.NoError(t, err)
	}
	committed := map[int32]int64{}
	offsets.Each(func(o kadm.OffsetResponse) { committed[o.Partition] = max(o.At, 0) })
	return committed
}

// produce writes records as a client that is not ours would.
func (tp *topic) produce(t *testing.T, records ...*kgo.Record) {
	t.Helper()
	require.NoError(t, tp.client.ProduceSync(t.Context(), records...).FirstErr())
}

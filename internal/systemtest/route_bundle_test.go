package systemtest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/internal/services"
	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/transports/kafka"
)

// poisonType is the type of messages that nothing can help.
const poisonType = "order.poisoned"

// unlessPoisoned is a handler that leaves an effect, or refuses for good.
func unlessPoisoned(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
	if msg.Type == poisonType {
		return handler.Permanent(errors.New("no such warehouse"))
	}
	return effect(ctx, tx, msg)
}

// mixed returns good and dead messages in turn, of eight keys.
func mixed(n int) (all []*handler.Message, good, dead []string) {
	all = messages(0, n)
	for i, msg := range all {
		msg.Key = fmt.Append(nil, "order-", i/2%8)
		if i%2 == 1 {
			msg.Type = poisonType
			dead = append(dead, msg.ID)
		} else {
			good = append(good, msg.ID)
		}
	}
	return all, good, dead
}

// deadTopic is the name of the topic's dead letter topic, which is not there yet.
func (tp *topic) deadTopic() string { return tp.name + ".dead" }

// createDeadTopic makes the dead letter topic.
func (tp *topic) createDeadTopic(t *testing.T, partitions int32) {
	t.Helper()
	require.NoError(t, services.CreateTopic(t.Context(), tp.admin, tp.deadTopic(), partitions, nil))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_, err := tp.admin.DeleteTopic(ctx, tp.deadTopic())
		require.NoError(t, err)
	})
}

// publishAttempt is how long a relay's attempt may take.
const publishAttempt = 2 * time.Second

// toKafka publishes each event to the topic that its aggregate type names.
func toKafka(t *testing.T, brokers []string, opts ...kgo.Opt) handler.Publisher {
	t.Helper()
	opts = append(append(kafka.WithinAttempt(publishAttempt), kgo.SeedBrokers(brokers...)), opts...)
	client, err := kgo.NewClient(opts...)
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return kafka.NewPublisher(client).Route(outbox.AggregateType)
}

// relay runs a relay while the test runs.
func (b *testBundle) relay(t *testing.T, publisher handler.Publisher) *outbox.Relay {
	t.Helper()
	relay, err := outbox.NewRelay(b.Pool, publisher, outbox.RelayConfig{
		Schema: b.Schema, AttemptTimeout: publishAttempt, RetryMaxDelay: time.Second, Poll: 50 * time.Millisecond, Logger: b.log.logger(),
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- relay.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
	return relay
}

// events returns how many events are in each state.
func (b *testBundle) events(t *testing.T) map[outbox.State]int {
	t.Helper()
	rows, err := b.Pool.Query(t.Context(), `SELECT state, count(*) FROM events GROUP BY state`)
	require.NoError(t, err)
	counts := map[outbox.State]int{}
	var state outbox.State
	var n int
	_, err = pgx.ForEachRow(rows, []any{&state, &n}, func() error {
		counts[state] = n
		return nil
	})
	require.NoError(t, err)
	return counts
}

// awaitHeld waits until an event is waiting, or in quarantine, for this reason.
func (b *testBundle) awaitHeld(t *testing.T, state outbox.State, reason string) {
	t.Helper()
	await(t, "an event "+string(state)+": "+reason, func() bool {
		records, err := outbox.NewStore(b.Schema).List(t.Context(), b.Pool, outbox.Filter{State: state})
		require.NoError(t, err)
		return slices.ContainsFunc(records, func(r outbox.Record) bool { return strings.Contains(r.LastError, reason) })
	})
}

// retryUntilPublished does what a person does who has mended the cause.
func (b *testBundle) retryUntilPublished(t *testing.T, n int) {
	t.Helper()
	store := outbox.NewStore(b.Schema)
	await(t, fmt.Sprint(n, " events published"), func() bool {
		records, err := store.List(t.Context(), b.Pool, outbox.Filter{State: outbox.StateQuarantined})
		require.NoError(t, err)
		for _, r := range records {
			_, err := store.Retry(t.Context(), b.Pool, r.ID)
			require.NoError(t, err)
		}
		return b.events(t)[outbox.StatePublished] == n
	})
}

// requireTold requires that the dead letter topic holds these messages, each
// under one id, as they came and with where they came from, and each key in order.
func requireTold(t *testing.T, client *kgo.Client, admin *kadm.Client, topic string, sent []*handler.Message, dead []string) {
	t.Helper()
	ends, err := admin.ListEndOffsets(t.Context(), topic)
	require.NoError(t, err)
	total := 0
	ends.Each(func(o kadm.ListedOffset) { total += int(o.Offset) })

	client.AddConsumeTopics(topic)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var records []*kgo.Record
	for len(records) < total {
		fetches := client.PollFetches(ctx)
		require.NoError(t, fetches.Err0())
		records = append(records, fetches.Records()...)
	}
	byID := map[string]*handler.Message{}
	for _, msg := range sent {
		byID[msg.ID] = msg
	}
	var told []string
	seen := map[string]bool{}
	partitions, last := map[string]int32{}, map[string]int64{}
	for _, r := range records {
		says := map[string]string{}
		for _, h := range r.Headers {
			require.NotContains(t, says, h.Key)
			says[h.Key] = string(h.Value)
		}
		if seen[says["message-id"]] { // an attempt whose answer came too late on a busy machine
			continue
		}
		seen[says["message-id"]] = true
		id, key := says[dlq.HeaderOriginalID], string(r.Key)
		told = append(told, id)
		msg := byID[id]
		require.NotNil(t, msg, id)
		require.Equal(t, string(msg.Key), key)
		require.Equal(t, string(msg.Payload), string(r.Value))
		require.Equal(t, msg.Type, says["message-type"])
		require.NotEqual(t, id, says["message-id"], "an id of its own")
		require.Equal(t, []string{consumer, "permanent", "1", "no such warehouse"},
			[]string{says[dlq.HeaderConsumer], says[dlq.HeaderReason], says[dlq.HeaderAttempts], says[dlq.HeaderError]})
		offset, err := strconv.ParseInt(says[dlq.HeaderOriginalOffset], 10, 64)
		require.NoError(t, err)
		if p, ok := partitions[key]; ok {
			require.Equal(t, p, r.Partition, "a key has one partition")
			require.Greater(t, offset, last[key], "in the order in which they came")
		}
		partitions[key], last[key] = r.Partition, offset
	}
	require.ElementsMatch(t, dead, told)
}

// reader is a client that reads topics from their beginning.
func (tp *topic) reader(t *testing.T) *kgo.Client {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(tp.brokers...), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return client
}

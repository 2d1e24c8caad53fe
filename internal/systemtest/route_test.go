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
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
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

// relay publishes to Kafka while the test runs.
func (b *testBundle) relay(t *testing.T, brokers []string, opts ...kgo.Opt) *outbox.Relay {
	t.Helper()
	const attempt = 2 * time.Second
	opts = append(append(kafka.WithinAttempt(attempt), kgo.SeedBrokers(brokers...)), opts...)
	client, err := kgo.NewClient(opts...)
	require.NoError(t, err)
	t.Cleanup(client.Close)
	relay, err := outbox.NewRelay(b.Pool, kafka.NewPublisher(client).Route(outbox.AggregateType), outbox.RelayConfig{
		Schema: b.Schema, AttemptTimeout: attempt, RetryMaxDelay: time.Second, Poll: 50 * time.Millisecond, Logger: b.log.logger(),
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

// awaitQuarantine waits until the relay gave up on an event for this reason.
func (b *testBundle) awaitQuarantine(t *testing.T, reason string) {
	t.Helper()
	await(t, "an event in quarantine: "+reason, func() bool {
		records, err := outbox.NewStore(b.Schema).List(t.Context(), b.Pool, outbox.Filter{State: outbox.StateQuarantined})
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

// Case K9: the dead letter topic is missing, and a consumer that writes to it
// directly must choose between losing the message and standing still (franz-go's
// example of a dead letter queue; Brighter ADR 0055). Here the source goes on
// with nothing lost: each letter is in the database, its event waits in the
// outbox or in quarantine with the reason, and is published once the topic is
// there.
func TestRoute_DeadLetterTopicMissing(t *testing.T) {
	t.Parallel()

	b := setup(t, onKafka, place{partitions: 3})
	topic := b.broker.(*topic)
	sent, good, dead := mixed(60)
	b.relay(t, topic.brokers)
	r := b.start(t, unlessPoisoned, inbox.Config{DeadLetterRoute: topic.deadTopic()})
	send(t, topic, sent...)

	r.awaitSettled(t, len(sent))
	b.awaitQuarantine(t, "UNKNOWN_TOPIC_OR_PARTITION")
	r.finish(t)
	require.Zero(t, topic.left(t), "the source went on")
	b.requireOneEffectEach(t, good)
	require.Len(t, b.letters(t), len(dead))
	events := b.events(t)
	require.Zero(t, events[outbox.StatePublished])
	require.Equal(t, len(dead), events[outbox.StateQuarantined]+events[outbox.StateWaiting]+events[outbox.StatePending])

	topic.createDeadTopic(t, 3)
	b.retryUntilPublished(t, len(dead))
	requireTold(t, topic.reader(t), topic.admin, topic.deadTopic(), sent, dead)
}

// Case K9: the dead letter topic has fewer partitions than its source, and who
// writes to the partition that a message came from cannot (Spring's default).
// A message's partition is its key's, whatever their number.
func TestRoute_DeadLetterTopicHasFewerPartitions(t *testing.T) {
	t.Parallel()

	b := setup(t, onKafka, place{partitions: 6})
	topic := b.broker.(*topic)
	topic.createDeadTopic(t, 2)
	sent, good, dead := mixed(60)
	relay := b.relay(t, topic.brokers)
	r := b.start(t, unlessPoisoned, inbox.Config{DeadLetterRoute: topic.deadTopic()})
	send(t, topic, sent...)

	r.awaitSettled(t, len(sent))
	await(t, "all published", func() bool { return b.events(t)[outbox.StatePublished] == len(dead) })
	r.finish(t)

	require.Zero(t, relay.Stats().Kinds[topic.deadTopic()].Quarantined)
	b.requireOneEffectEach(t, good)
	beyond := 0
	for _, letter := range b.letters(t) {
		if letter.Message.Origin.Partition >= 2 {
			beyond++
		}
	}
	require.NotZero(t, beyond, "some came from partitions that the dead letter topic does not have")
	requireTold(t, topic.reader(t), topic.admin, topic.deadTopic(), sent, dead)
}

// Case K9: whoever publishes may not write to the dead letter topic. The letters
// are there, their events are in quarantine with that reason, and are published
// once the right is given.
func TestRoute_DeadLetterTopicDenied(t *testing.T) {
	t.Parallel()

	const source, dead = "payments", "payments.dead"
	as := func(user string) kgo.Opt { return kgo.SASL(plain.Auth{User: user, Pass: user}.AsMechanism()) }
	cluster, err := kfake.NewCluster(kfake.EnableSASL(), kfake.EnableACLs(), kfake.SeedTopics(2, source, dead),
		kfake.GroupMinSessionTimeout(time.Second), kfake.Superuser("PLAIN", "admin", "admin"), kfake.User("PLAIN", "relay", "relay"))
	require.NoError(t, err)
	t.Cleanup(cluster.Close)
	client, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...), as("admin"), kgo.DefaultProduceTopic(source), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	require.NoError(t, err)
	t.Cleanup(client.Close)
	admin := kadm.NewClient(client)
	grant := func(acl *kadm.ACLBuilder) {
		_, err := admin.CreateACLs(t.Context(), acl.Allow("User:relay").AllowHosts("*").ResourcePatternType(kadm.ACLPatternLiteral))
		require.NoError(t, err)
	}
	grant(kadm.NewACLs().Topics(dead).Operations(kadm.OpDescribe))
	grant(kadm.NewACLs().Clusters().Operations(kadm.OpIdempotentWrite))

	b := setupDatabase(t)
	sent, good, poisoned := mixed(20)
	b.relay(t, cluster.ListenAddrs(), as("relay"))
	in := b.inbox(t, b.Pool, unlessPoisoned, inbox.Config{DeadLetterRoute: dead})
	r := b.run(t, in, kafka.NewSource(kafka.SourceConfig{Group: "shipping", Topics: []string{source}, Logger: b.log.logger()},
		kgo.SeedBrokers(cluster.ListenAddrs()...), as("admin")))
	require.NoError(t, errors.Join(kafka.NewPublisher(client).Publish(t.Context(), sent)...))

	r.awaitSettled(t, len(sent))
	b.awaitQuarantine(t, "TOPIC_AUTHORIZATION_FAILED")
	b.requireOneEffectEach(t, good)
	require.Len(t, b.letters(t), len(poisoned))
	require.Zero(t, b.events(t)[outbox.StatePublished])

	grant(kadm.NewACLs().Topics(dead).Operations(kadm.OpWrite))
	b.retryUntilPublished(t, len(poisoned))
	r.finish(t)
	requireTold(t, client, admin, dead, sent, poisoned)
}

// Case K9: a message whose letter and event are not committed is not
// acknowledged, whatever is settled behind it; the next process gets it.
func TestRoute_SourceWaitsForLetterAndEvent(t *testing.T) {
	t.Parallel()

	b := setup(t, onKafka, place{})
	topic := b.broker.(*topic)
	topic.createDeadTopic(t, 1)
	sent := messages(0, 11)
	const poisoned = 5
	sent[poisoned].Type, sent[poisoned].Key = poisonType, []byte("order-1")
	cfg := inbox.Config{DeadLetterRoute: topic.deadTopic()}
	r := b.start(t, unlessPoisoned, cfg)
	send(t, topic, sent[0])
	r.awaitSettled(t, 1) // the start checks have passed
	b.exec(t, `CREATE SEQUENCE tries`)
	b.exec(t, `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM nextval('`+pgx.Identifier{b.Schema}.Sanitize()+`.tries'); RAISE 'not now' USING ERRCODE = '55000'; END $$`)
	b.exec(t, `CREATE TRIGGER refuse BEFORE INSERT ON outbox FOR EACH ROW EXECUTE FUNCTION refuse()`)
	tries := func() (n int) {
		require.NoError(t, b.Pool.QueryRow(t.Context(), `SELECT last_value FROM tries`).Scan(&n))
		return n
	}
	send(t, topic, sent[1:]...)

	r.awaitSettled(t, len(sent)-1)
	await(t, "a commit", func() bool { return topic.committed(t)[0] == poisoned })
	before := tries()
	await(t, "many more tries", func() bool { return tries() > before+30 }) // longer than a commit interval
	require.EqualValues(t, poisoned, topic.committed(t)[0])
	require.Empty(t, b.letters(t))
	require.EqualValues(t, 1, r.in.Stats().FailedAttempts, "that the letter cannot be written is no attempt")
	r.finish(t)
	require.EqualValues(t, poisoned, topic.committed(t)[0])

	b.exec(t, `DROP TRIGGER refuse ON outbox`)
	b.relay(t, topic.brokers)
	next := b.start(t, unlessPoisoned, cfg)
	await(t, "nothing left", func() bool { return topic.left(t) == 0 })
	next.finish(t)
	await(t, "the event published", func() bool { return b.events(t)[outbox.StatePublished] == 1 })
	require.Len(t, b.letters(t), 1)
	b.requireOneEffectEach(t, slices.Delete(ids(sent), poisoned, poisoned+1))
	requireTold(t, topic.reader(t), topic.admin, topic.deadTopic(), sent, []string{sent[poisoned].ID})
}

// reader is a client that reads topics from their beginning.
func (tp *topic) reader(t *testing.T) *kgo.Client {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(tp.brokers...), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return client
}

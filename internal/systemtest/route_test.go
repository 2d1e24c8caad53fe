package systemtest_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/inbox"
	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/transports/kafka"
	"github.com/semel-go/semel/transports/rabbitmq"
)

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
	b.relay(t, toKafka(t, topic.brokers))
	r := b.start(t, unlessPoisoned, inbox.Config{DeadLetterRoute: topic.deadTopic()})
	send(t, topic, sent...)

	r.awaitSettled(t, len(sent))
	b.awaitHeld(t, outbox.StateQuarantined, "UNKNOWN_TOPIC_OR_PARTITION")
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
	relay := b.relay(t, toKafka(t, topic.brokers))
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
	b.relay(t, toKafka(t, cluster.ListenAddrs(), as("relay")))
	in := b.inbox(t, b.Pool, unlessPoisoned, inbox.Config{DeadLetterRoute: dead})
	r := b.run(t, in, kafka.NewSource(kafka.SourceConfig{Group: "shipping", Topics: []string{source}, Logger: b.log.logger()},
		kgo.SeedBrokers(cluster.ListenAddrs()...), as("admin")))
	require.NoError(t, errors.Join(kafka.NewPublisher(client).Publish(t.Context(), sent)...))

	r.awaitSettled(t, len(sent))
	b.awaitHeld(t, outbox.StateQuarantined, "TOPIC_AUTHORIZATION_FAILED")
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
	b.relay(t, toKafka(t, topic.brokers))
	next := b.start(t, unlessPoisoned, cfg)
	await(t, "nothing left", func() bool { return topic.left(t) == 0 })
	next.finish(t)
	await(t, "the event published", func() bool { return b.events(t)[outbox.StatePublished] == 1 })
	require.Len(t, b.letters(t), 1)
	b.requireOneEffectEach(t, slices.Delete(ids(sent), poisoned, poisoned+1))
	requireTold(t, topic.reader(t), topic.admin, topic.deadTopic(), sent, []string{sent[poisoned].ID})
}

// The same with an exchange that is missing. That the broker says so is a failed
// attempt: the letters are told by themselves once it is there.
func TestRoute_DeadLetterExchangeMissing(t *testing.T) {
	t.Parallel()

	b := setup(t, onRabbitMQ, place{})
	q := b.broker.(*queue)
	dead := q.name + ".dead"
	publisher := rabbitmq.NewPublisher(rabbitmq.PublisherConfig{URL: q.url, ExchangeOf: outbox.AggregateType, Logger: b.log.logger()})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		require.NoError(t, publisher.Close(ctx))
	})
	sent, good, poisoned := mixed(20)
	b.relay(t, publisher)
	r := b.start(t, unlessPoisoned, inbox.Config{DeadLetterRoute: dead})
	send(t, q, sent...)

	r.awaitSettled(t, len(sent))
	b.awaitHeld(t, outbox.StateWaiting, dead)
	r.finish(t)
	require.Zero(t, q.left(t), "the source went on")
	b.requireOneEffectEach(t, good)
	require.Len(t, b.letters(t), len(poisoned))
	require.Zero(t, b.events(t)[outbox.StatePublished])

	require.NoError(t, q.channel.ExchangeDeclare(dead, amqp.ExchangeFanout, false, true, false, false, nil)) // gone with its queue
	_, err := q.channel.QueueDeclare(dead, false, false, true, false, nil)
	require.NoError(t, err)
	require.NoError(t, q.channel.QueueBind(dead, "", dead, false, nil))
	await(t, "all published", func() bool { return b.events(t)[outbox.StatePublished] == len(poisoned) })
	told := map[string]bool{}
	for {
		d, ok, err := q.channel.Get(dead, true)
		require.NoError(t, err)
		if !ok {
			break
		}
		told[d.Headers[dlq.HeaderOriginalID].(string)] = true
		require.NotEmpty(t, d.MessageId)
		require.NotContains(t, poisoned, d.MessageId, "an id of its own")
		require.Equal(t, []any{q.name, "", q.name, "permanent", "no such warehouse", consumer}, []any{
			d.Headers[dlq.HeaderOriginalQueue], d.Headers[dlq.HeaderOriginalExchange], d.Headers[dlq.HeaderOriginalRoutingKey],
			d.Headers[dlq.HeaderReason], d.Headers[dlq.HeaderError], d.Headers[dlq.HeaderConsumer],
		})
	}
	require.ElementsMatch(t, poisoned, slices.Collect(maps.Keys(told)))
}

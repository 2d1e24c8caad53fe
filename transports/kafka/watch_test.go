package kafka_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel/transports/transporttest"
)

// With KIP-848 too, a topic that does not exist yet is waited for, aloud.
func TestSource_MissingTopicServerSide(t *testing.T) {
	t.Parallel()

	eachBroker(t, 1, func(t *testing.T, b *testBundle) {
		missing := b.topic + "-later"
		var logged log
		config := b.config()
		config.Topics, config.Logger = []string{missing}, logged.logger()
		r := start(t, b.sourceOf(config, kgo.ServerSideBalancer()), transporttest.SinkConfig{})
		logged.await(t, "a topic does not exist; waiting for it")
		require.Contains(t, logged.String(), missing)

		b.createTopic(t, missing, 1, nil)
		b.topic = missing
		b.produce(t, 0, "there")
		require.Equal(t, []string{"there"}, payloads(r.take(t, 1)))
	})
}

// A topic that is deleted while it is consumed ends Run, which names it.
func TestSource_TopicDeleted(t *testing.T) {
	t.Parallel()

	eachBroker(t, 1, func(t *testing.T, b *testBundle) {
		b.produce(t, 0, numbered(0, 2)...)
		r := start(t, b.source(), transporttest.SinkConfig{})
		out := r.take(t, 2)
		out[0].Settled()
		b.awaitCommitted(t, 0, 1)
		_, err := b.admin.DeleteTopic(t.Context(), b.topic)
		require.NoError(t, err)
		out[1].Settled() // and can be committed nowhere

		err = r.await(t)
		require.ErrorIs(t, err, kerr.UnknownTopicID)
		require.ErrorContains(t, err, b.topic)
		require.ErrorContains(t, err, "the topic was deleted or made anew: start again")
	})
}

// With KIP-848 the group takes the partitions of a deleted topic away, and Run
// says that it waits for the topic. One of that name ends it: the client holds
// on to what it knew, and a new Run consumes the new topic from its start.
func TestSource_TopicDeletedServerSide(t *testing.T) {
	t.Parallel()

	eachBroker(t, 1, func(t *testing.T, b *testBundle) {
		b.produce(t, 0, numbered(0, 2)...)
		var logged log
		config := b.config()
		config.Logger = logged.logger()
		r := start(t, b.sourceOf(config, kgo.ServerSideBalancer()), transporttest.SinkConfig{})
		out := r.take(t, 2)
		out[0].Settled()
		b.awaitCommitted(t, 0, 1)
		_, err := b.admin.DeleteTopic(t.Context(), b.topic)
		require.NoError(t, err)
		require.Eventually(t, func() bool { return isClosed(out[1].Revoked) }, deadline, tick)
		out[1].Settled()
		logged.await(t, "a topic does not exist; waiting for it")
		require.Contains(t, logged.String(), b.topic)

		b.createTopic(t, b.topic, 1, nil)
		b.client.PurgeTopicsFromClient(b.topic) // or it produces to the old one
		b.produce(t, 0, "new")
		err = r.await(t)
		require.ErrorIs(t, err, kerr.UnknownTopicID)
		require.ErrorContains(t, err, "the topic was deleted or made anew: start again")

		again := start(t, b.source(kgo.ServerSideBalancer()), transporttest.SinkConfig{})
		d := again.sink.Next(t)
		require.Equal(t, "new", string(d.Message.Payload))
		require.NotEqual(t, out[0].Message.Origin.Position, d.Message.Origin.Position, "another message at the same offset")
		d.Settled()
		b.awaitCommitted(t, 0, 1)
		again.stop(t)
	})
}

package kafka_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/transports/kafka"
)

// producer makes a user's client.
func (b *testBundle) producer(t *testing.T, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	client, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(b.brokers...), kgo.MetadataMinAge(100 * time.Millisecond)}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return client
}

// consume reads n records as a plain client does.
func (b *testBundle) consume(t *testing.T, topic string, n int) []*kgo.Record {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	client := b.producer(t, kgo.ConsumeTopics(topic))
	var records []*kgo.Record
	for len(records) < n {
		fetches := client.PollFetches(ctx)
		require.NoError(t, ctx.Err(), "%d of %d records came", len(records), n)
		records = append(records, fetches.Records()...)
	}
	return records
}

func TestPublisher_Record(t *testing.T) {
	t.Parallel()

	eachBroker(t, 1, func(t *testing.T, b *testBundle) {
		msgs := []*handler.Message{
			{
				ID: "evt_1", Type: "order.paid", Key: []byte("order_42"), Version: 7, CorrelationID: "corr", Payload: []byte("body"),
				Headers: handler.Headers{{Name: "x-hop", Value: []byte("b")}, {Name: "x-nil"}, {Name: "x-hop", Value: []byte("a")}},
			},
			{ID: "evt_2", Key: []byte{}},
		}
		errs := kafka.NewPublisher(b.producer(t)).To(b.topic).Publish(t.Context(), msgs)
		require.Equal(t, []error{nil, nil}, errs)

		records := b.consume(t, b.topic, 2)
		require.Equal(t, "order_42", string(records[0].Key))
		require.Equal(t, "body", string(records[0].Value))
		require.Equal(t, []kgo.RecordHeader{
			{Key: "x-hop", Value: []byte("b")},
			{Key: "x-nil"},
			{Key: "x-hop", Value: []byte("a")},
			{Key: "message-id", Value: []byte("evt_1")},
			{Key: "message-type", Value: []byte("order.paid")},
			{Key: "message-key", Value: []byte("order_42")},
			{Key: "message-version", Value: []byte("7")},
			{Key: "correlation-id", Value: []byte("corr")},
		}, records[0].Headers)
		require.Nil(t, records[1].Key, "an empty key is none: it would put all such messages into one partition")
		require.Nil(t, records[1].Value, "a tombstone")
	})
}

func TestPublisher_Topic(t *testing.T) {
	t.Parallel()

	b := setup(t, 1)
	other := b.newTopic(t, 1, nil)
	byDefault := kafka.NewPublisher(b.producer(t, kgo.DefaultProduceTopic(b.topic)))
	byType := byDefault.Route(func(m *handler.Message) string { return m.Type })

	errs := byDefault.Publish(t.Context(), []*handler.Message{{ID: "one"}})
	errs = append(errs, byDefault.To(other).Publish(t.Context(), []*handler.Message{{ID: "two"}})...)
	errs = append(errs, byType.Publish(t.Context(), []*handler.Message{{ID: "three", Type: b.topic}, {ID: "four", Type: other}})...)
	require.Equal(t, []error{nil, nil, nil, nil}, errs)

	require.Len(t, b.consume(t, b.topic, 2), 2)
	require.Len(t, b.consume(t, other, 2), 2)
}

// What no further try mends is told apart from what one may, and does not
// touch its neighbours.
func TestPublisher_Permanent(t *testing.T) {
	t.Parallel()

	b := setup(t, 1)
	large := make([]byte, 2_000_000)
	_, _ = rand.NewChaCha8([32]byte{}).Read(large)
	p := kafka.NewPublisher(b.producer(t)).Route(func(m *handler.Message) string { return m.Type })
	errs := p.Publish(t.Context(), []*handler.Message{
		{ID: "good", Type: b.topic},
		nil,
		{ID: "no topic"},
		{ID: "large", Type: b.topic, Payload: large},
		{ID: "unknown", Type: "no-such-topic"},
		{ID: "good too", Type: b.topic},
	})

	require.NoError(t, errs[0])
	require.NoError(t, errs[5])
	for i, want := range map[int]error{1: kafka.ErrNoMessage, 2: kafka.ErrNoTopic, 3: kerr.MessageTooLarge, 4: kerr.UnknownTopicOrPartition} {
		require.ErrorIs(t, errs[i], want)
		require.True(t, handler.IsPermanent(errs[i]), "message %d: %v", i, errs[i])
	}
	require.ErrorContains(t, errs[3], `publish message "large" to Kafka`)
	require.Len(t, b.consume(t, b.topic, 2), 2)
}

// A client holds on to the topic it saw first: without help, nothing would reach
// the one that an operator made anew until the process starts again.
func TestPublisher_TopicMadeAnew(t *testing.T) {
	t.Parallel()

	eachBroker(t, 1, func(t *testing.T, b *testBundle) {
		p := kafka.NewPublisher(b.producer(t, kgo.MetadataMinAge(10*time.Millisecond))).To(b.topic)
		publish := func(id string) error {
			err := p.Publish(t.Context(), []*handler.Message{{ID: id}})[0]
			require.False(t, handler.IsPermanent(err) && !errors.Is(err, kerr.UnknownTopicOrPartition), "%v", err)
			return err
		}
		require.NoError(t, publish("one"))

		_, err := b.admin.DeleteTopic(t.Context(), b.topic)
		require.NoError(t, err)
		require.Eventually(t, func() bool {
			_, err := b.admin.CreateTopic(t.Context(), 1, 1, nil, b.topic)
			return err == nil
		}, deadline, tick)

		require.Eventually(t, func() bool { return publish("two") == nil }, deadline, tick)
	})
}

func TestPublisher_Forbidden(t *testing.T) {
	t.Parallel()

	b := setup(t, 1)
	b.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.TopicAuthorizationFailed, Count: -1})

	errs := kafka.NewPublisher(b.producer(t)).To(b.topic).Publish(t.Context(), []*handler.Message{{ID: "one"}})

	require.ErrorIs(t, errs[0], kerr.TopicAuthorizationFailed)
	require.True(t, handler.IsPermanent(errs[0]))
}

// Case "published" is not "confirmed": a client that does not wait for all
// replicas, or that may write twice, is refused.
func TestPublisher_UnsafeClient(t *testing.T) {
	t.Parallel()

	b := setup(t, 1)
	tests := []struct {
		name string
		opts []kgo.Opt
	}{
		{name: "NotIdempotent", opts: []kgo.Opt{kgo.DisableIdempotentWrite()}},
		{name: "LeaderOnly", opts: []kgo.Opt{kgo.DisableIdempotentWrite(), kgo.RequiredAcks(kgo.LeaderAck())}},
		{name: "NoAck", opts: []kgo.Opt{kgo.DisableIdempotentWrite(), kgo.RequiredAcks(kgo.NoAck())}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			errs := kafka.NewPublisher(b.producer(t, tt.opts...)).To(b.topic).Publish(t.Context(), []*handler.Message{{ID: "one"}})
			require.ErrorIs(t, errs[0], kafka.ErrUnsafeClient)
			require.True(t, handler.IsPermanent(errs[0]))
		})
	}
}

// A broker that does not answer holds Publish no longer than its context, and
// its silence is no verdict about the message.
func TestPublisher_EndsWithContext(t *testing.T) {
	t.Parallel()

	b := setup(t, 1)
	p := kafka.NewPublisher(b.producer(t)).To(b.topic)
	require.NoError(t, p.Publish(t.Context(), []*handler.Message{{ID: "warm"}})[0])
	silent := make(chan struct{})
	b.cluster.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		b.cluster.SleepControl(func() { <-silent })
		return nil, nil, false
	})
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	errs := p.Publish(ctx, []*handler.Message{{ID: "one"}, {ID: "two"}})
	close(silent)

	for _, err := range errs {
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.False(t, handler.IsPermanent(err))
	}
	require.Eventually(t, func() bool {
		return p.Publish(t.Context(), []*handler.Message{{ID: "one"}})[0] == nil
	}, deadline, tick, "a later try arrives")
}

func TestPublisher_KeepsOrderOfKey(t *testing.T) {
	t.Parallel()

	b := setup(t, 4)
	p := kafka.NewPublisher(b.producer(t)).To(b.topic)
	for round := range 10 {
		var msgs []*handler.Message
		for i := range 20 {
			msgs = append(msgs, &handler.Message{ID: "evt", Key: []byte("k"), Version: int64(round*20 + i + 1)})
		}
		for _, err := range p.Publish(t.Context(), msgs) {
			require.NoError(t, err)
		}
	}
	last := -1
	for _, r := range b.consume(t, b.topic, 200) {
		require.Equal(t, last+1, int(r.Offset), "one partition, in order")
		last++
		v := handler.Headers{}
		for _, h := range r.Headers {
			v = append(v, handler.Header{Name: h.Key, Value: h.Value})
		}
		version, _ := v.First("message-version")
		require.True(t, bytes.Equal(version, []byte(strconv.Itoa(last+1))), "%s", version)
	}
}

// What follows a refused message of its key is not sent: it would pass it.
func TestPublisher_BehindFailed(t *testing.T) {
	t.Parallel()

	eachBroker(t, 1, func(t *testing.T, b *testBundle) {
		large := make([]byte, 2_000_000)
		_, _ = rand.NewChaCha8([32]byte{}).Read(large)
		p := kafka.NewPublisher(b.producer(t)).To(b.topic)
		require.True(t, p.KeepsOrder())

		errs := p.Publish(t.Context(), []*handler.Message{
			{ID: "1", Key: []byte("a")},
			{ID: "2", Key: []byte("a"), Payload: large},
			{ID: "3", Key: []byte("b")},
			{ID: "4", Key: []byte("a")},
			{ID: "5"},
		})

		for _, i := range []int{0, 2, 4} {
			require.NoError(t, errs[i])
		}
		require.ErrorIs(t, errs[1], kerr.MessageTooLarge)
		require.True(t, handler.IsPermanent(errs[1]))
		require.ErrorIs(t, errs[3], kafka.ErrBehindFailed)
		require.False(t, handler.IsPermanent(errs[3]))
		require.Len(t, b.consume(t, b.topic, 3), 3)
	})
}

// The topic takes less than the client does. Brokers refuse the whole batch in
// which a large record is: the others of it are not taken for too large.
func TestPublisher_TopicTakesLess(t *testing.T) {
	t.Parallel()

	eachBroker(t, 1, func(t *testing.T, b *testBundle) {
		topic := b.newTopic(t, 1, map[string]*string{"max.message.bytes": kadm.StringPtr("10000")})
		large := make([]byte, 20_000)
		_, _ = rand.NewChaCha8([32]byte{}).Read(large)
		p := kafka.NewPublisher(b.producer(t, kgo.ProducerLinger(100*time.Millisecond))).To(topic)

		errs := p.Publish(t.Context(), []*handler.Message{
			{ID: "1", Key: []byte("a")},
			{ID: "2", Key: []byte("a"), Payload: large},
			{ID: "3", Key: []byte("b")},
			{ID: "4", Key: []byte("a")},
			{ID: "5"},
		})

		for _, i := range []int{0, 2, 4} {
			require.NoError(t, errs[i])
		}
		require.ErrorIs(t, errs[1], kerr.MessageTooLarge)
		require.True(t, handler.IsPermanent(errs[1]))
		require.ErrorIs(t, errs[3], kafka.ErrBehindFailed)
		require.Len(t, b.consume(t, topic, 3), 3)
	})
}

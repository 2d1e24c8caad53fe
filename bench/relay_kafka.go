package main

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/transports/kafka"
)

// relayKafka compares relays that publish to Kafka with the two parts.
func (b *bench) relayKafka(ctx context.Context) (result, error) {
	t, err := newTopic(ctx)
	if err != nil {
		return result{}, err
	}
	defer t.drop()
	return b.relayParts(ctx, t, b.events/2)
}

// relayKafkaHot compares relays when most events are of one aggregate with the
// same when none is.
func (b *bench) relayKafkaHot(ctx context.Context) (result, error) {
	t, err := newTopic(ctx)
	if err != nil {
		return result{}, err
	}
	defer t.drop()
	return b.hotAgainstSpread(ctx, t, b.events/2, b.events/2)
}

// noLinger is for who waits for what it has produced before it produces more:
// there is nothing to linger for.
func noLinger() kgo.Opt { return kgo.ProducerLinger(0) }

// publishers are n of them, each with a client of its own.
func (t *topic) publishers(n int) (publishers []handler.Publisher, done func(), err error) {
	var clients []*kgo.Client
	done = func() {
		for _, c := range clients {
			c.Close()
		}
	}
	for range n {
		client, err := kgo.NewClient(t.seeds, noLinger())
		if err != nil {
			done()
			return nil, nil, fmt.Errorf("make a Kafka client: %w", err)
		}
		clients = append(clients, client)
		publishers = append(publishers, kafka.NewPublisher(client).To(t.name))
	}
	return publishers, done, nil
}

func (t *topic) clear() error { return nil } // more of it costs nothing

// send publishes with the plain client as it comes: acks=all, idempotent, as
// many in flight as it likes.
func (t *topic) send(ctx context.Context, msgs []*handler.Message) error {
	records := make([]*kgo.Record, len(msgs))
	for i, msg := range msgs {
		records[i] = t.record(msg)
	}
	return t.admin.ProduceSync(ctx, records...).FirstErr()
}

// record is a message with the headers that ours have.
func (t *topic) record(msg *handler.Message) *kgo.Record {
	r := &kgo.Record{Topic: t.name, Key: msg.Key, Value: msg.Payload}
	for _, h := range msg.WriteHeaders() {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: h.Name, Value: h.Value})
	}
	return r
}

package main

import (
	"context"
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/transports/rabbitmq"
)

// relayAMQP compares relays that publish to RabbitMQ with the two parts.
func (b *bench) relayAMQP(ctx context.Context) (result, error) {
	q, err := newQueue(nil)
	if err != nil {
		return result{}, err
	}
	defer q.drop()
	return b.relayParts(ctx, q, b.messages)
}

// relayAMQPHot compares relays when most events are of one aggregate with the
// same when none is. Of the one aggregate the next event goes out when the one
// before is confirmed, so there are fewer events to publish.
func (b *bench) relayAMQPHot(ctx context.Context) (result, error) {
	q, err := newQueue(nil)
	if err != nil {
		return result{}, err
	}
	defer q.drop()
	return b.hotAgainstSpread(ctx, q, max(b.messages/10, workers), b.messages)
}

// publishers are n of them, each with a connection of its own. Together they
// have no more unconfirmed than the plain client.
func (q *queue) publishers(n int) (publishers []handler.Publisher, done func(), err error) {
	var ours []*rabbitmq.Publisher
	for range n {
		p := rabbitmq.NewPublisher(rabbitmq.PublisherConfig{
			URL: q.url, RoutingKey: func(*handler.Message) string { return q.name }, Window: confirmWindow / n, Logger: silent(),
		})
		ours, publishers = append(ours, p), append(publishers, p)
	}
	return publishers, func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		for _, p := range ours {
			_ = p.Close(ctx)
		}
	}, nil
}

func (q *queue) clear() error {
	if _, err := q.channel.QueuePurge(q.name, false); err != nil {
		return fmt.Errorf("purge queue %s: %w", q.name, err)
	}
	return nil
}

// send publishes with the plain client, with the properties and headers that
// ours have.
func (q *queue) send(ctx context.Context, msgs []*handler.Message) error {
	return q.publish(ctx, len(msgs), func(i int) amqp.Publishing {
		msg := msgs[i]
		headers := amqp.Table{}
		for _, h := range msg.WriteHeaders() {
			headers[h.Name] = string(h.Value)
		}
		return amqp.Publishing{
			MessageId: msg.ID, Type: msg.Type, Timestamp: msg.OccurredAt, Headers: headers, Body: msg.Payload, DeliveryMode: amqp.Persistent,
		}
	})
}

package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/transports/rabbitmq"
)

const (
	amqpVariable = "AMQP_URL"
	prefetch     = 200 // the source's default
)

// amqpRun compares Run on a queue with amqp091 and the work by hand.
func (b *bench) amqpRun(ctx context.Context) (result, error) {
	db, err := newDatabase(ctx, workers)
	if err != nil {
		return result{}, err
	}
	defer db.drop()
	q, err := newQueue(newMessages(b.messages))
	if err != nil {
		return result{}, err
	}
	defer q.drop()
	return b.parts(ctx, db, q, q.msgs)
}

// queue is a durable queue that belongs to one benchmark.
type queue struct {
	name, url string
	msgs      []*handler.Message
	conn      *amqp.Connection
	channel   *amqp.Channel // publishes with confirms
}

func newQueue(msgs []*handler.Message) (*queue, error) {
	q := &queue{name: "semel-bench-" + rand.Text(), url: os.Getenv(amqpVariable), msgs: msgs}
	if q.url == "" {
		return nil, fmt.Errorf("%s is not set: use make bench, or name a RabbitMQ broker", amqpVariable)
	}
	var err error
	if q.conn, err = amqp.Dial(q.url); err != nil {
		return nil, fmt.Errorf("connect to the broker that %s names: %w", amqpVariable, err)
	}
	if q.channel, err = q.conn.Channel(); err == nil {
		err = q.channel.Confirm(false)
	}
	if err == nil {
		_, err = q.channel.QueueDeclare(q.name, true, false, false, false, nil)
	}
	if err != nil {
		_ = q.conn.Close()
		return nil, fmt.Errorf("declare queue %s: %w", q.name, err)
	}
	return q, nil
}

func (q *queue) drop() {
	_, _ = q.channel.QueueDelete(q.name, false, false, false)
	_ = q.conn.Close()
}

func (q *queue) client() string { return "amqp091" }

// fill publishes all messages, persistent, and waits until the broker has them.
func (q *queue) fill(ctx context.Context) error {
	return q.publish(ctx, len(q.msgs), func(i int) amqp.Publishing {
		msg := q.msgs[i]
		return amqp.Publishing{
			MessageId: msg.ID, Type: msg.Type, Body: msg.Payload, DeliveryMode: amqp.Persistent,
			Headers: amqp.Table{"message-key": string(msg.Key)},
		}
	})
}

// confirmWindow is how many messages may be out without a confirm.
const confirmWindow = 1000

// publish publishes n messages and waits until the broker has confirmed them.
func (q *queue) publish(ctx context.Context, n int, message func(i int) amqp.Publishing) error {
	var out [confirmWindow]*amqp.DeferredConfirmation
	for i := range n + confirmWindow {
		slot := &out[i%confirmWindow]
		err := confirmed(ctx, *slot)
		if *slot = nil; err == nil && i < n {
			*slot, err = q.channel.PublishWithDeferredConfirmWithContext(ctx, "", q.name, true, false, message(i))
		}
		if err != nil {
			return fmt.Errorf("publish to queue %s: %w", q.name, err)
		}
	}
	return nil
}

func confirmed(ctx context.Context, c *amqp.DeferredConfirmation) error {
	if c == nil {
		return nil
	}
	ack, err := c.WaitContext(ctx)
	if err == nil && !ack {
		err = errors.New("the broker refused a message")
	}
	return err
}

func (q *queue) source() handler.Source {
	return rabbitmq.NewSource(rabbitmq.SourceConfig{URL: q.url, Queue: q.name, Prefetch: prefetch, Logger: silent()})
}

// move takes with the same prefetch and acknowledges one by one, as a consumer
// must whose messages end in any order.
func (q *queue) move(ctx context.Context, n int) error {
	conn, err := amqp.Dial(q.url)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	channel, err := conn.Channel()
	if err != nil {
		return err
	}
	if err := channel.Qos(prefetch, 0, false); err != nil {
		return err
	}
	deliveries, err := channel.ConsumeWithContext(ctx, q.name, "", false, false, false, false, nil)
	if err != nil {
		return err
	}
	for d := range deliveries {
		if err := d.Ack(false); err != nil {
			return err
		}
		if n--; n == 0 {
			return channel.Close() // answered after the last acknowledgement
		}
	}
	return fmt.Errorf("the broker ended the consumer with %d messages to come: %w", n, context.Cause(ctx))
}

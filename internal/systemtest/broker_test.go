package systemtest_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/transports/kafka"
	"github.com/semel-go/semel/transports/rabbitmq"
)

const (
	onKafka    = "Kafka"
	onRabbitMQ = "RabbitMQ"
)

// broker is one topic, or one queue, that belongs to a test.
type broker interface {
	// publish sends messages in their order. It returns when the broker keeps
	// all of them.
	publish(ctx context.Context, msgs ...*handler.Message) error

	// left is how many messages are not acknowledged. On RabbitMQ only those
	// count that no consumer holds.
	left(t *testing.T) int

	// recipe says how to consume from it.
	recipe() recipe
}

// place is what a test asks of its topic or queue. The zero value is one
// partition, and a plain queue.
type place struct {
	partitions   int32 // of a topic
	singleActive bool  // the queue has one active consumer at a time

	// The queue is a quorum queue that gives up a message after so many deliveries.
	// What it gives up goes to its dead letter exchange.
	deliveryLimit int
}

func newBroker(t *testing.T, kind string, p place) broker {
	t.Helper()
	if kind == onKafka {
		return newTopic(t, p)
	}
	return newQueue(t, p)
}

// eachBroker runs a test on Kafka and on RabbitMQ.
func eachBroker(t *testing.T, test func(t *testing.T, kind string)) {
	t.Helper()
	for _, kind := range []string{onKafka, onRabbitMQ} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			test(t, kind)
		})
	}
}

// recipe says how to make a source, in this process or in a child.
type recipe struct {
	Kind  string
	Place string // topic or queue

	// Kafka.
	Brokers []string
	Group   string
	Session time.Duration // how soon the group notices a killed member

	// RabbitMQ.
	URL       string
	Prefetch  int
	Exclusive bool
}

func (r recipe) source(logger *slog.Logger) handler.Source {
	if r.Kind == onRabbitMQ {
		return rabbitmq.NewSource(r.rabbitmq(logger))
	}
	return kafka.NewSource(kafka.SourceConfig{Group: r.Group, Topics: []string{r.Place}, Logger: logger},
		kgo.SeedBrokers(r.Brokers...),
		kgo.SessionTimeout(r.Session),
		kgo.HeartbeatInterval(r.Session/6),
		kgo.RebalanceTimeout(20*time.Second),
	)
}

func (r recipe) rabbitmq(logger *slog.Logger) rabbitmq.SourceConfig {
	return rabbitmq.SourceConfig{URL: r.URL, Queue: r.Place, Prefetch: r.Prefetch, Exclusive: r.Exclusive, Logger: logger}
}

// send publishes for a test.
func send(t *testing.T, b broker, msgs ...*handler.Message) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, b.publish(ctx, msgs...))
}

// messages returns n small messages, the first one with number from.
func messages(from, n int) []*handler.Message {
	msgs := make([]*handler.Message, n)
	for i := range msgs {
		msgs[i] = &handler.Message{ID: fmt.Sprintf("evt_%05d", from+i), Type: "order.paid", Payload: []byte(`{"amount":1}`)}
	}
	return msgs
}

func ids(msgs []*handler.Message) []string {
	all := make([]string, len(msgs))
	for i, msg := range msgs {
		all[i] = msg.ID
	}
	return all
}

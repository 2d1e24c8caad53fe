package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/internal/services"
	"github.com/semel-go/semel/transports/kafka"
	"github.com/semel-go/semel/transports/rabbitmq"
)

// broker is the parent's end of a topic or queue that it has made.
type broker interface {
	handler.Publisher

	// lag is how many messages wait there. RabbitMQ does not count those that
	// are out to a consumer.
	lag(ctx context.Context) (int64, error)

	// remove deletes the topic or queue.
	remove(ctx context.Context) error
}

func open(ctx context.Context, p place) (broker, error) {
	var b broker
	var err error
	if p.Broker == onKafka {
		b, err = openKafka(ctx, p.Name)
	} else {
		b, err = openRabbitMQ(p.Name)
	}
	if err != nil {
		return nil, fmt.Errorf("prepare %s: %w", p.Broker, err)
	}
	return b, nil
}

const partitions = 4

type kafkaTopic struct {
	handler.Publisher
	name   string
	client *kgo.Client
	admin  *kadm.Client
}

func openKafka(ctx context.Context, name string) (broker, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(services.SplitBrokers(os.Getenv(services.KafkaVariable))...))
	if err != nil {
		return nil, err
	}
	admin := kadm.NewClient(client)
	if err := services.CreateTopic(ctx, admin, name, partitions, nil); err != nil {
		client.Close()
		return nil, err
	}
	return kafkaTopic{kafka.NewPublisher(client).To(name), name, client, admin}, nil
}

func (k kafkaTopic) lag(ctx context.Context) (int64, error) {
	lags, err := k.admin.Lag(ctx, k.name)
	if err == nil {
		err = lags.Error()
	}
	if errors.Is(err, kerr.GroupIDNotFound) {
		return k.size(ctx) // the consumer has not joined yet
	}
	if err != nil {
		return 0, fmt.Errorf("read the lag at Kafka: %w", err)
	}
	return lags[k.name].Lag.Total(), nil
}

// size is how many records were written.
func (k kafkaTopic) size(ctx context.Context) (n int64, err error) {
	ends, err := k.admin.ListEndOffsets(ctx, k.name)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return 0, fmt.Errorf("read the size of the topic at Kafka: %w", err)
	}
	ends.Each(func(end kadm.ListedOffset) { n += end.Offset })
	return n, nil
}

func (k kafkaTopic) remove(ctx context.Context) error {
	defer k.client.Close()
	_, err := k.admin.DeleteTopic(ctx, k.name)
	_, groupErr := k.admin.DeleteGroup(ctx, k.name)
	if errors.Is(groupErr, kerr.GroupIDNotFound) { // nobody has joined it
		groupErr = nil
	}
	return errors.Join(err, groupErr)
}

type rabbitQueue struct {
	*rabbitmq.Publisher
	name    string
	conn    *amqp.Connection
	channel *amqp.Channel
}

func openRabbitMQ(name string) (broker, error) {
	conn, err := amqp.Dial(os.Getenv(services.RabbitMQVariable))
	if err != nil {
		return nil, err
	}
	channel, err := conn.Channel()
	if err == nil {
		_, err = channel.QueueDeclare(name, true, false, false, false, nil)
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	publisher := rabbitmq.NewPublisher(rabbitmq.PublisherConfig{
		URL:        os.Getenv(services.RabbitMQVariable),
		RoutingKey: func(*handler.Message) string { return name },
	})
	return rabbitQueue{publisher, name, conn, channel}, nil
}

func (r rabbitQueue) lag(context.Context) (int64, error) {
	q, err := r.channel.QueueDeclarePassive(r.name, true, false, false, false, nil)
	if err != nil {
		return 0, fmt.Errorf("read the length of the queue at RabbitMQ: %w", err)
	}
	return int64(q.Messages), nil
}

func (r rabbitQueue) remove(ctx context.Context) error {
	_, err := r.channel.QueueDelete(r.name, false, false, false)
	return errors.Join(err, r.conn.Close(), r.Close(ctx))
}

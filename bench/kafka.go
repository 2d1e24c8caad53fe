package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/internal/services"
	"github.com/semel-go/semel/transports/kafka"
)

const (
	brokersVariable = "KAFKA_BROKERS"
	partitions      = 4
)

// kafkaRun compares Run on a topic with franz-go and the work by hand.
func (b *bench) kafkaRun(ctx context.Context) (result, error) {
	db, err := newDatabase(ctx, workers)
	if err != nil {
		return result{}, err
	}
	defer db.drop()
	t, err := newTopic(ctx)
	if err != nil {
		return result{}, err
	}
	defer t.drop()
	msgs := newMessages(b.messages)
	if err := t.publish(ctx, msgs); err != nil {
		return result{}, err
	}
	return b.parts(ctx, db, t, msgs)
}

// topic is a topic that belongs to one benchmark. Everybody who reads it does
// so in a group of their own, from the start.
type topic struct {
	name  string
	seeds kgo.Opt
	admin *kgo.Client
}

func newTopic(ctx context.Context) (*topic, error) {
	brokers := strings.Split(os.Getenv(brokersVariable), ",")
	if brokers[0] == "" {
		return nil, fmt.Errorf("%s is not set: use make bench, or name Kafka brokers", brokersVariable)
	}
	t := &topic{name: "semel-bench-" + rand.Text(), seeds: kgo.SeedBrokers(brokers...)}
	var err error
	if t.admin, err = kgo.NewClient(t.seeds); err != nil {
		return nil, fmt.Errorf("make a Kafka client: %w", err)
	}
	if err := services.CreateTopic(ctx, kadm.NewClient(t.admin), t.name, partitions, nil); err != nil {
		t.admin.Close()
		return nil, err
	}
	return t, nil
}

func (t *topic) drop() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_, _ = kadm.NewClient(t.admin).DeleteTopics(ctx, t.name)
	t.admin.Close()
}

// publish returns when the broker has all of msgs.
func (t *topic) publish(ctx context.Context, msgs []*handler.Message) error {
	records := make([]*kgo.Record, len(msgs))
	for i, msg := range msgs {
		records[i] = &kgo.Record{
			Topic: t.name, Key: msg.Key, Value: msg.Payload,
			Headers: []kgo.RecordHeader{
				{Key: "message-id", Value: []byte(msg.ID)},
				{Key: "message-type", Value: []byte(msg.Type)},
			},
		}
	}
	if err := t.admin.ProduceSync(ctx, records...).FirstErr(); err != nil {
		return fmt.Errorf("publish to topic %s: %w", t.name, err)
	}
	return nil
}

func (t *topic) client() string             { return "franz-go" }
func (t *topic) fill(context.Context) error { return nil } // a new group reads from the start

func (t *topic) source() handler.Source {
	return kafka.NewSource(kafka.SourceConfig{Group: t.group(), Topics: []string{t.name}, Logger: silent()}, t.seeds)
}

func (t *topic) group() string { return t.name + "-" + rand.Text() }

// move polls and commits what it polled, as a consumer does that keeps nothing
// in flight.
func (t *topic) move(ctx context.Context, n int) error {
	client, err := kgo.NewClient(t.seeds, kgo.ConsumerGroup(t.group()), kgo.ConsumeTopics(t.name),
		kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit())
	if err != nil {
		return err
	}
	defer client.Close()
	for n > 0 {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return err
		}
		n -= fetches.NumRecords()
		if err := client.CommitUncommittedOffsets(ctx); err != nil {
			return err
		}
	}
	client.LeaveGroup()
	return nil
}

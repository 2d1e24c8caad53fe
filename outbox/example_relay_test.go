package outbox_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel/internal/exampledb"
	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/transports/kafka"
)

// To Kafka, into the topic that is called as the aggregate type is.
func ExampleNewRelay() {
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	pool, done := exampledb.Open()
	defer done()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "order"))
	if err != nil {
		log.Fatal(err)
	}
	defer cluster.Close()
	brokers := cluster.ListenAddrs()
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		return outbox.Write(ctx, tx, outbox.Event{AggregateType: "order", AggregateID: "42", Type: "OrderPaid"})
	})
	if err != nil {
		log.Fatal(err)
	}
	go func() {
		defer stop()
		printOne(ctx, brokers)
	}()

	client, err := kgo.NewClient(append(kafka.WithinAttempt(5*time.Second), kgo.SeedBrokers(brokers...))...)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	publisher := kafka.NewPublisher(client).Route(outbox.AggregateType)
	relay, err := outbox.NewRelay(pool, publisher, outbox.RelayConfig{})
	if err != nil {
		log.Fatal(err)
	}
	if err := relay.Run(ctx); err != nil {
		log.Fatal(err)
	}
	// Output: topic order, key 42: OrderPaid
}

// printOne prints the first record of the topic.
func printOne(ctx context.Context, brokers []string) {
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.ConsumeTopics("order"))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	for {
		for r := range client.PollFetches(ctx).RecordsAll() {
			for _, h := range r.Headers {
				if h.Key == "message-type" {
					fmt.Printf("topic %s, key %s: %s\n", r.Topic, r.Key, h.Value)
					return
				}
			}
		}
	}
}

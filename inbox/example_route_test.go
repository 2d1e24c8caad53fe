package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
	"github.com/semel-go/semel/internal/exampledb"
	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/transports/kafka"
)

// A dead letter is told to a topic too. The event commits with it; a relay
// publishes it.
func ExampleConfig_deadLetterRoute() {
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	pool, done := exampledb.Open()
	defer done()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "shipping.dead"))
	if err != nil {
		log.Fatal(err)
	}
	defer cluster.Close()
	ship := func(context.Context, pgx.Tx, *handler.Message) error {
		return handler.Permanent(errors.New("no such warehouse"))
	}

	in, err := inbox.New(pool, "shipping", ship, inbox.Config{DeadLetterRoute: "shipping.dead"})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := in.Process(ctx, &handler.Message{ID: "evt_1", Type: "order.paid", Key: []byte("42"), Payload: []byte(`{"id": 42}`)}); err != nil {
		log.Fatal(err)
	}

	go func() {
		defer stop()
		printDeadLetter(ctx, cluster.ListenAddrs())
	}()
	client, err := kgo.NewClient(append(kafka.WithinAttempt(5*time.Second), kgo.SeedBrokers(cluster.ListenAddrs()...))...)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	relay, err := outbox.NewRelay(pool, kafka.NewPublisher(client).Route(outbox.AggregateType), outbox.RelayConfig{})
	if err != nil {
		log.Fatal(err)
	}
	if err := relay.Run(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// 42: {"id": 42}
	// semel-original-id: evt_1
	// semel-consumer: shipping
	// semel-reason: permanent
	// semel-error: no such warehouse
}

// printDeadLetter prints the first record of the topic.
func printDeadLetter(ctx context.Context, brokers []string) {
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.ConsumeTopics("shipping.dead"))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	for r := range client.PollFetches(ctx).RecordsAll() {
		fmt.Printf("%s: %s\n", r.Key, r.Value)
		for _, h := range r.Headers {
			switch h.Key {
			case dlq.HeaderOriginalID, dlq.HeaderConsumer, dlq.HeaderReason, dlq.HeaderError:
				fmt.Printf("%s: %s\n", h.Key, h.Value)
			}
		}
		return
	}
}

package inbox_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
	"github.com/semel-go/semel/internal/exampledb"
	"github.com/semel-go/semel/transports/kafka"
)

// Order is what the payloads hold.
type Order struct {
	ID int64 `json:"id"`
}

// A whole consumer: the handler's writes and the record that the message was
// handled commit together.
func Example() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	pool, done := exampledb.Open() // in a service: pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	defer done()
	brokers, closeBrokers := payments(`{"id": 42}`)
	defer closeBrokers()
	go func() { // a service runs until it gets a signal
		exampledb.Await(pool, 42, "PAID")
		stop()
	}()

	h := handler.JSON(func(ctx context.Context, tx pgx.Tx, order Order, msg *handler.Message) error {
		_, err := tx.Exec(ctx, `UPDATE orders SET status = 'PAID' WHERE id = $1`, order.ID)
		return err
	})
	in, err := inbox.New(pool, "shipping", h, inbox.Config{})
	if err != nil {
		log.Fatal(err)
	}
	source := kafka.NewSource(kafka.SourceConfig{Group: "shipping", Topics: []string{"payments"}},
		kgo.SeedBrokers(brokers...))
	if err := in.Run(ctx, source); err != nil {
		log.Fatal(err)
	}
	fmt.Println("order 42 is", exampledb.Status(pool, 42))
	// Output:
	// order 42 is PAID
}

// payments starts a broker in this process, whose topic has one message.
func payments(payload string) (brokers []string, done func()) {
	cluster, err := kfake.NewCluster(kfake.SeedTopics(1, "payments"))
	if err != nil {
		log.Fatal(err)
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	errs := kafka.NewPublisher(client).To("payments").Publish(context.Background(),
		[]*handler.Message{{ID: "evt_1", Payload: []byte(payload)}})
	if errs[0] != nil {
		log.Fatal(errs[0])
	}
	return cluster.ListenAddrs(), cluster.Close
}

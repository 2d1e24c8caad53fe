package inbox_test

import (
	"context"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
	"github.com/semel-go/semel/transports/kafka"
	"github.com/semel-go/semel/transports/memory"
	"github.com/semel-go/semel/transports/rabbitmq"
)

// The examples have no output to compare: they need a database.

// Order is what the payloads hold.
type Order struct {
	ID int64 `json:"id"`
}

// A whole consumer: the handler's writes and the record that the message was
// handled commit together.
func Example() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		log.Fatal(err)
	}
	defer pool.Close()

	h := handler.JSON(func(ctx context.Context, tx pgx.Tx, order Order, msg *handler.Message) error {
		_, err := tx.Exec(ctx, `UPDATE orders SET status = 'PAID' WHERE id = $1`, order.ID)
		return err
	})
	in, err := inbox.New(pool, "shipping", h, inbox.Config{})
	if err != nil {
		log.Fatal(err)
	}
	source := kafka.NewSource(kafka.SourceConfig{Group: "shipping", Topics: []string{"payments"}},
		kgo.SeedBrokers("localhost:9092"))
	if err := in.Run(ctx, source); err != nil {
		log.Fatal(err)
	}
}

// RabbitMQ instead of Kafka: only the source differs.
func ExampleInbox_Run_rabbitmq() {
	var in *inbox.Inbox // see the example of the package
	ctx := context.Background()

	source := rabbitmq.NewSource(rabbitmq.SourceConfig{URL: os.Getenv("AMQP_URL"), Queue: "payments"})
	if err := in.Run(ctx, source); err != nil {
		log.Fatal(err)
	}
}

// A queue in memory, for a test of one's own handler.
func ExampleInbox_Run_memory() {
	var in *inbox.Inbox // see the example of the package
	ctx, stop := context.WithCancel(context.Background())

	queue := memory.NewQueue("payments")
	queue.Publish(ctx, []*handler.Message{
		{ID: "evt_1", Payload: []byte(`{"id": 42}`)},
		{ID: "evt_1", Payload: []byte(`{"id": 42}`)},
	})
	go func() {
		_ = queue.Wait(ctx) // until both are settled
		stop()
	}()
	if err := in.Run(ctx, memory.NewSource(queue)); err != nil {
		log.Fatal(err)
	}
}

// arrival is a message of anybody's client.
type arrival struct {
	ID, Type string
	Body     []byte
}

func (arrival) Ack()  {}
func (arrival) Nack() {}

// In a consumer loop of one's own, without our transports.
func ExampleInbox_Process() {
	var in *inbox.Inbox // see the example of the package
	var arrivals <-chan arrival
	ctx := context.Background()

	for a := range arrivals {
		_, err := in.Process(ctx, &handler.Message{ID: a.ID, Type: a.Type, Payload: a.Body})
		if err != nil {
			a.Nack() // not settled: it must come again
			continue
		}
		a.Ack() // settled: processed, duplicate, mismatch or dead
	}
}

// A dead letter, after its cause was mended.
func ExampleInbox_Replay() {
	var in *inbox.Inbox     // see the example of the package
	const deadLetterID = 17 // from semel dlq list
	ctx := context.Background()

	outcome, err := in.Replay(ctx, deadLetterID)
	if err != nil {
		log.Fatal(err)
	}
	log.Println(outcome) // processed, duplicate, or dead again
}

// Producers without usable ids: a natural key of the payload. A resend that
// carries a new delivery time is still the same message.
func ExampleConfig() {
	var pool *pgxpool.Pool // of the service
	var book handler.Func

	config := inbox.Config{
		ID: func(msg *handler.Message) (string, error) {
			number, _ := msg.Headers.First("invoice-number")
			return string(number), nil // empty is a bad id: the message goes to the dead letters
		},
		Fingerprint: func(msg *handler.Message) []byte {
			number, _ := msg.Headers.First("invoice-number")
			return number
		},
	}
	if _, err := inbox.New(pool, "invoicing", book, config); err != nil {
		log.Fatal(err)
	}
}

// What the engine does, told as it does it.
func ExampleObserverFunc() {
	var pool *pgxpool.Pool // of the service
	var ship handler.Func

	config := inbox.Config{
		Observer: inbox.ObserverFunc(func(_ context.Context, e inbox.Event) {
			if e.Kind == inbox.DeadLettered {
				log.Printf("%s: message %s is dead: %s", e.Consumer, e.Message.ID, e.Reason)
			}
		}),
	}
	if _, err := inbox.New(pool, "shipping", ship, config); err != nil {
		log.Fatal(err)
	}
}

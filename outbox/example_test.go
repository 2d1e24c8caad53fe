package outbox_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/internal/exampledb"
	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/transports/memory"
)

// published runs a relay until its queue has got n messages, and prints them.
func published(pool *pgxpool.Pool, n int) {
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	queue := memory.NewQueue("orders")
	relay, err := outbox.NewRelay(pool, queue, outbox.RelayConfig{})
	if err != nil {
		log.Fatal(err)
	}
	sink := printer{n: n, stop: stop}
	go func() { _ = memory.NewSource(queue).Run(ctx, &sink) }()
	if err := relay.Run(ctx); err != nil {
		log.Fatal(err)
	}
}

// printer prints messages, and stops after n.
type printer struct {
	n    int
	stop func()
}

func (p *printer) Deliver(_ context.Context, d *handler.Delivery) error {
	m := d.Message
	fmt.Printf("%s %s %d %s\n", m.Type, m.Key, m.Version, m.Payload)
	d.Settled()
	if p.n--; p.n == 0 {
		p.stop()
	}
	return nil
}

// The event is written with the change that it tells of: both commit, or
// neither does.
func ExampleWrite() {
	ctx := context.Background()
	pool, done := exampledb.Open()
	defer done()

	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `UPDATE orders SET status = 'PAID' WHERE id = $1`, 42); err != nil {
			return err
		}
		return outbox.Write(ctx, tx, outbox.Event{
			AggregateType: "order", AggregateID: "42", Type: "OrderPaid", Version: 1, Payload: []byte(`{"id": 42}`),
		})
	})
	if err != nil {
		log.Fatal(err)
	}

	published(pool, 1)
	// Output: OrderPaid 42 1 {"id": 42}
}

// Writers that only insert must keep each other apart.
func ExampleLock() {
	ctx := context.Background()
	pool, done := exampledb.Open()
	defer done()

	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if err := outbox.Lock(ctx, tx, "account", "7"); err != nil {
			return err
		}
		return outbox.Write(ctx, tx,
			outbox.Event{AggregateType: "account", AggregateID: "7", Type: "Debited", Version: 1, Payload: []byte("10")},
			outbox.Event{AggregateType: "account", AggregateID: "7", Type: "Credited", Version: 2, Payload: []byte("3")},
		)
	})
	if err != nil {
		log.Fatal(err)
	}

	published(pool, 2)
	// Output:
	// Debited 7 1 10
	// Credited 7 2 3
}

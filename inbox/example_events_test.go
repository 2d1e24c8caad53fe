package inbox_test

import (
	"context"
	"fmt"
	"log"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
	"github.com/semel-go/semel/internal/exampledb"
	"github.com/semel-go/semel/outbox"
)

// In a handler the events commit with the message too, and say by themselves
// what caused them.
func ExampleInbox_Process_events() {
	ctx := context.Background()
	pool, done := exampledb.Open()
	defer done()

	h := func(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
		return outbox.Write(ctx, tx, outbox.Event{AggregateType: "order", AggregateID: "42", Type: "OrderShipped"})
	}
	in, err := inbox.New(pool, "shipping", h, inbox.Config{})
	if err != nil {
		log.Fatal(err)
	}
	for range 2 { // the second is a duplicate, and writes nothing
		if _, err := in.Process(ctx, &handler.Message{ID: "evt_1"}); err != nil {
			log.Fatal(err)
		}
	}

	rows, err := pool.Query(ctx, `SELECT type, source, causation_id FROM semel.outbox`)
	if err != nil {
		log.Fatal(err)
	}
	var kind, source, cause string
	_, err = pgx.ForEachRow(rows, []any{&kind, &source, &cause}, func() error {
		fmt.Println(kind, "by", source, "because of", cause)
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: OrderShipped by shipping because of evt_1
}

package inbox_test

import (
	"context"
	"fmt"
	"log"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
	"github.com/semel-go/semel/internal/exampledb"
)

// A provider that wants its answer at once: the message is stored now, and handled
// by whatever process works the inbox.
func ExampleInbox_Store() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	pool, done := exampledb.Open()
	defer done()
	in, err := inbox.New(pool, "billing", func(_ context.Context, _ pgx.Tx, msg *handler.Message) error {
		fmt.Println("handled", msg.ID)
		stop() // a service works until it gets a signal
		return nil
	}, inbox.Config{})
	if err != nil {
		log.Fatal(err)
	}

	msg := &handler.Message{ID: "evt_1", Type: "invoice.paid"}
	for range 2 { // it came twice
		outcome, err := in.Store(ctx, msg)
		if err != nil {
			log.Fatal(err) // the provider must send it again
		}
		fmt.Println(outcome)
	}
	if err := in.Work(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// stored
	// duplicate
	// handled evt_1
}

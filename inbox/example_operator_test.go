package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
	"github.com/semel-go/semel/internal/exampledb"
)

// A message is dead, and others of its key wait behind it. A person looks, and
// decides, without the handler. semel inbox and semel dlq do the same.
func ExampleStore() {
	ctx := context.Background()
	pool, done := exampledb.Open()
	defer done()
	in, err := inbox.New(pool, "ledger", func(context.Context, pgx.Tx, *handler.Message) error {
		return handler.Permanent(errors.New("no such account"))
	}, inbox.Config{Ordering: inbox.Strict})
	if err != nil {
		log.Fatal(err)
	}
	for _, id := range []string{"evt_1", "evt_2"} {
		if _, err := in.Process(ctx, &handler.Message{ID: id, Key: []byte("account-7")}); err != nil {
			log.Fatal(err)
		}
	}

	var store inbox.Store
	status, err := store.Status(ctx, pool)
	if err != nil {
		log.Fatal(err)
	}
	for _, c := range status.Consumers {
		fmt.Printf("%s: %d parked, %d behind\n", c.Consumer, c.Parked, c.Behind)
	}
	waiting, err := store.Load(ctx, pool, "ledger", "evt_2")
	if err != nil {
		log.Fatal(err)
	}
	first := waiting.Before[0]
	fmt.Printf("%s waits for %s: %s\n", waiting.Message.ID, first.Message.ID, first.Errors[0])

	if err := store.Discard(ctx, pool, first.DeadLetterID, "ann"); err != nil { // or Replay, once that is mended
		log.Fatal(err)
	}
	waiting, err = store.Load(ctx, pool, "ledger", "evt_2")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(waiting.Message.ID, "is", waiting.State)
	// Output:
	// ledger: 1 parked, 1 behind
	// evt_2 waits for evt_1: no such account
	// evt_2 is ready
}

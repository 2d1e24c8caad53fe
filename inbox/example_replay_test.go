package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
	"github.com/semel-go/semel/internal/exampledb"
)

// A dead letter, after its cause was mended.
func ExampleInbox_Replay() {
	ctx := context.Background()
	pool, done := exampledb.Open()
	defer done()
	mended := false
	in, err := inbox.New(pool, "shipping", func(context.Context, pgx.Tx, *handler.Message) error {
		if !mended {
			return handler.Permanent(errors.New("no such warehouse"))
		}
		return nil
	}, inbox.Config{})
	if err != nil {
		log.Fatal(err)
	}
	first, err := in.Process(ctx, &handler.Message{ID: "evt_1"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(first)

	letters, err := dlq.Store{}.List(ctx, pool, dlq.Filter{Consumer: "shipping"}) // as semel dlq list
	if err != nil {
		log.Fatal(err)
	}
	deadLetterID := letters[0].ID
	mended = true

	outcome, err := in.Replay(ctx, deadLetterID)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(outcome) // or duplicate, or dead again
	// Output:
	// dead
	// processed
}

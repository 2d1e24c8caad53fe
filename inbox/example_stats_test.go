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

// Counts since the inbox was made. The third message has the id of the first
// and another payload: it is not skipped, somebody must look.
func ExampleInbox_Stats() {
	ctx := context.Background()
	pool, done := exampledb.Open()
	defer done()
	ship := func(context.Context, pgx.Tx, *handler.Message) error { return nil }
	in, err := inbox.New(pool, "shipping", ship, inbox.Config{})
	if err != nil {
		log.Fatal(err)
	}

	for _, payload := range []string{"2 books", "2 books", "20 books"} {
		if _, err := in.Process(ctx, &handler.Message{ID: "evt_1", Payload: []byte(payload)}); err != nil {
			log.Fatal(err)
		}
	}
	stats := in.Stats()
	fmt.Println("processed:", stats.Processed)
	fmt.Println("duplicates:", stats.Duplicates)
	fmt.Println("mismatches:", stats.Mismatches)
	// Output:
	// processed: 1
	// duplicates: 1
	// mismatches: 1
}

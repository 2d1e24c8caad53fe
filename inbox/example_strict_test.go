package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
	"github.com/semel-go/semel/internal/exampledb"
)

// What follows a message that failed waits for it; other keys go on.
func ExampleConfig_strict() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	pool, done := exampledb.Open()
	defer done()
	post := func(_ context.Context, _ pgx.Tx, msg *handler.Message) error {
		if strings.HasPrefix(msg.ID, "bad") {
			return handler.Permanent(errors.New("no such account"))
		}
		fmt.Println("posted", msg.ID)
		if msg.ID == "a-3" {
			stop() // a service works until it gets a signal
		}
		return nil
	}

	in, err := inbox.New(pool, "ledger", post, inbox.Config{
		Ordering: inbox.Strict,
		Retry:    inbox.Retry{Attempts: 8, Delay: time.Second, MaxDelay: 30 * time.Second},
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, msg := range []*handler.Message{
		{ID: "bad-1", Key: []byte("a")}, {ID: "a-2", Key: []byte("a")}, {ID: "b-1", Key: []byte("b")}, {ID: "a-3", Key: []byte("a")},
	} {
		outcome, err := in.Process(ctx, msg)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(msg.ID, "is", outcome)
	}

	letters, err := dlq.Store{}.List(ctx, pool, dlq.Filter{Consumer: "ledger"})
	if err != nil {
		log.Fatal(err)
	}
	// as semel dlq discard
	if err := (inbox.Store{}).Discard(ctx, pool, letters[0].ID, "ann"); err != nil {
		log.Fatal(err)
	}
	if err := in.Work(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// bad-1 is dead
	// a-2 is stored
	// posted b-1
	// b-1 is processed
	// a-3 is stored
	// posted a-2
	// posted a-3
}

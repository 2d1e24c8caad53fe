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

// What the engine does, told as it does it.
func ExampleObserverFunc() {
	ctx := context.Background()
	pool, done := exampledb.Open()
	defer done()
	ship := func(context.Context, pgx.Tx, *handler.Message) error {
		return handler.Permanent(errors.New("no such warehouse"))
	}

	config := inbox.Config{
		Observer: inbox.ObserverFunc(func(_ context.Context, e inbox.Event) {
			if e.Kind == inbox.DeadLettered {
				fmt.Printf("%s: message %s is dead, %s: %v\n", e.Consumer, e.Message.ID, e.Reason, e.Err)
			}
		}),
	}
	in, err := inbox.New(pool, "shipping", ship, config)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := in.Process(ctx, &handler.Message{ID: "evt_1"}); err != nil {
		log.Fatal(err)
	}
	// Output:
	// shipping: message evt_1 is dead, permanent: no such warehouse
}

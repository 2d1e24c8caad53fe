package dlq_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/dedup"
	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/internal/exampledb"
)

// What is in front of a person, as semel dlq list and semel dlq show print it.
// Here one message was put there by hand; the engine does that itself.
func Example() {
	ctx := context.Background()
	pool, done := exampledb.Open()
	defer done()
	var store dlq.Store // of the default schema
	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if err := dedup.Register(ctx, tx, "shipping"); err != nil {
			return err
		}
		_, _, err := store.Add(ctx, tx, &dlq.Letter{
			ConsumerID: dedup.ConsumerID("shipping"),
			MessageID:  dedup.MessageID("evt_1"),
			Reason:     dlq.Exhausted,
			Attempts:   3,
			Errors:     dlq.Chain(fmt.Errorf("ship order 42: %w", errors.New("no such warehouse"))),
			Message:    &handler.Message{ID: "evt_1", Type: "order.paid", Payload: []byte(`{"id": 42}`)},
		})
		return err
	})
	if err != nil {
		log.Fatal(err)
	}

	letters, err := store.List(ctx, pool, dlq.Filter{Consumer: "shipping", State: dlq.Open})
	if err != nil {
		log.Fatal(err)
	}
	for _, l := range letters {
		fmt.Println(l.Consumer, l.Message.ID, l.Message.Type, l.Reason, "after", l.Attempts, "attempts")
		whole, err := store.Load(ctx, pool, l.ID) // a list has no payloads
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(string(whole.Message.Payload))
		for _, text := range whole.Errors {
			fmt.Println(text)
		}
	}
	// Output:
	// shipping evt_1 order.paid exhausted after 3 attempts
	// {"id": 42}
	// ship order 42: no such warehouse
	// no such warehouse
}

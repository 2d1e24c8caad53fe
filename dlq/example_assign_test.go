package dlq_test

import (
	"context"
	"fmt"
	"log"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/dedup"
	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/internal/exampledb"
)

// Every open dead letter is somebody's: whatever has no owner yet goes to those
// who are on call.
func ExampleStore_Assign() {
	ctx := context.Background()
	pool, done := exampledb.Open()
	defer done()
	var store dlq.Store
	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		_, _, err := store.Add(ctx, tx, &dlq.Letter{
			ConsumerID: dedup.ConsumerID("shipping"), MessageID: dedup.MessageID("evt_1"),
			Reason: dlq.Exhausted, Message: &handler.Message{ID: "evt_1"},
		})
		return err
	})
	if err != nil {
		log.Fatal(err)
	}

	letters, err := store.List(ctx, pool, dlq.Filter{State: dlq.Open, Unowned: true})
	if err != nil {
		log.Fatal(err)
	}
	for _, l := range letters {
		assigned, err := store.Assign(ctx, pool, "on call", l.ID)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(l.Message.ID, len(assigned.Changed) == 1)
	}
	unowned, err := store.Count(ctx, pool, dlq.Filter{State: dlq.Open, Unowned: true})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(unowned, "unowned")
	// Output:
	// evt_1 true
	// 0 unowned
}

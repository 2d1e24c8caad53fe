package outbox_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/internal/exampledb"
	"github.com/semel-go/semel/outbox"
)

// What the relay gave up on waits for a person. Here it is discarded: the later
// events of the order go on without it.
func ExampleStore() {
	ctx := context.Background()
	pool, done := exampledb.Open()
	defer done()
	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if err := outbox.Write(ctx, tx, outbox.Event{AggregateType: "order", AggregateID: "42", Type: "OrderPaid"}); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `UPDATE semel.outbox SET quarantined_at = now(), attempts = 1, last_error = 'no topic'`) // as a relay does
		return err
	})
	if err != nil {
		log.Fatal(err)
	}

	var store outbox.Store
	stuck, err := store.List(ctx, pool, outbox.Filter{State: outbox.StateQuarantined})
	if err != nil {
		log.Fatal(err)
	}
	for _, e := range stuck {
		fmt.Println(e.State, e.AggregateType, e.AggregateID, e.Type, e.LastError)
		changed, err := store.Discard(ctx, pool, e.ID)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(len(changed), "discarded")
	}
	// Output:
	// quarantined order 42 OrderPaid no topic
	// 1 discarded
}

// What is published is kept for a week.
func ExampleStore_Purge() {
	ctx := context.Background()
	pool, done := exampledb.Open()
	defer done()
	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		for _, id := range []string{"42", "43"} {
			if err := outbox.Write(ctx, tx, outbox.Event{AggregateType: "order", AggregateID: id, Type: "OrderPaid"}); err != nil {
				return err
			}
		}
		_, err := tx.Exec(ctx, `UPDATE semel.outbox SET published_at = now() - interval '8 days' WHERE aggregateid = '42'`) // as a relay did
		return err
	})
	if err != nil {
		log.Fatal(err)
	}

	var store outbox.Store
	deleted, err := store.Purge(ctx, pool, 7*24*time.Hour, outbox.PurgeConfig{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(deleted, "deleted")
	// Output: 1 deleted
}

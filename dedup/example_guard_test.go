package dedup_test

import (
	"context"
	"fmt"
	"log"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/dedup"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/internal/exampledb"
)

// Each event carries the whole order. The one that says it is new comes after the
// one that says it is shipped, and changes nothing.
func ExampleVersionGuard() {
	ctx := context.Background()
	pool, done := exampledb.Open()
	defer done()

	h := dedup.VersionGuard(dedup.GuardConfig{})(func(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
		_, err := tx.Exec(ctx, `UPDATE orders SET status = $1 WHERE id = 42`, string(msg.Payload))
		return err
	})

	for _, msg := range []*handler.Message{
		{ID: "evt_2", Key: []byte("42"), Version: 2, Payload: []byte("SHIPPED")},
		{ID: "evt_1", Key: []byte("42"), Version: 1, Payload: []byte("PAID")},
	} {
		cause := &handler.Cause{Consumer: "shipping", Message: msg} // the engine does this
		err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error { return h(handler.WithCause(ctx, cause), tx, msg) })
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(msg.ID, "is", cause.Outcome())
	}
	fmt.Println("order 42 is", exampledb.Status(pool, 42))
	// Output:
	// evt_2 is processed
	// evt_1 is superseded
	// order 42 is SHIPPED
}

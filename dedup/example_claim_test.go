package dedup_test

import (
	"context"
	"fmt"
	"log"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/dedup"
	"github.com/semel-go/semel/internal/exampledb"
)

// The claim and the effect in a transaction of one's own. A copy of the
// message comes when the order has long been shipped, and changes nothing.
func ExampleClaim() {
	ctx, id, order := context.Background(), "evt_1", 42
	pool, done := exampledb.Open()
	defer done()

	for range 2 {
		err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			claimed, err := dedup.Claim(ctx, tx, "shipping", id)
			if err != nil || !claimed {
				return err // nil: a duplicate, its effect is committed
			}
			_, err = tx.Exec(ctx, `UPDATE orders SET status = 'PAID' WHERE id = $1`, order)
			return err
		})
		if err != nil {
			log.Fatal(err) // not handled: it must come again
		}
		fmt.Println("order 42 is", exampledb.Status(pool, 42))
		if _, err := pool.Exec(ctx, `UPDATE orders SET status = 'SHIPPED' WHERE id = $1`, order); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// order 42 is PAID
	// order 42 is SHIPPED
}

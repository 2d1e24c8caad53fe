package dedup_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"

	"github.com/jackc/pgx/v5/stdlib"

	"github.com/semel-go/semel/dedup"
	"github.com/semel-go/semel/internal/exampledb"
)

// The same with database/sql and any PostgreSQL driver.
func ExampleClaimSQL() {
	book := func(ctx context.Context, tx *sql.Tx, id string, order int) error {
		claimed, err := dedup.ClaimSQL(ctx, tx, "shipping", id)
		if err != nil || !claimed {
			return err // nil: a duplicate, its effect is committed
		}
		_, err = tx.ExecContext(ctx, `UPDATE orders SET status = status || ', PAID' WHERE id = $1`, order)
		return err
	}

	ctx := context.Background()
	pool, done := exampledb.Open()
	defer done()
	db := stdlib.OpenDBFromPool(pool)
	for range 2 {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			log.Fatal(err)
		}
		if err := book(ctx, tx, "evt_1", 42); err != nil {
			log.Fatal(err) // and roll back, so that it can come again
		}
		if err := tx.Commit(); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println("order 42 is", exampledb.Status(pool, 42))
	// Output:
	// order 42 is NEW, PAID
}

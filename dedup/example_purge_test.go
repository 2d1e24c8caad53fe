package dedup_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/dedup"
	"github.com/semel-go/semel/internal/exampledb"
)

// What was handled is remembered for two weeks: no copy of a message may come
// later than that.
func ExampleStore_Purge() {
	ctx := context.Background()
	pool, done := exampledb.Open()
	defer done()
	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := dedup.Claim(ctx, tx, "shipping", "evt_1"); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `UPDATE semel.processed_messages SET processed_at = now() - interval '15 days'`) // time passes
		return err
	})
	if err != nil {
		log.Fatal(err)
	}

	deleted, err := dedup.Store{}.Purge(ctx, pool, 14*24*time.Hour, dedup.PurgeConfig{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(deleted, "deleted")
	// Output: 1 deleted
}

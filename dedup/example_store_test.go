package dedup_test

import (
	"context"
	"fmt"
	"log"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/dedup"
	"github.com/semel-go/semel/internal/exampledb"
	"github.com/semel-go/semel/schema"
)

// Tables in another schema than the default. Each consumer claims a message
// for itself.
func ExampleStore() {
	ctx := context.Background()
	pool, done := exampledb.Open()
	defer done()
	if _, err := schema.Up(ctx, pool, "shop", 0); err != nil { // as semel migrate up -schema shop
		log.Fatal(err)
	}

	store := dedup.NewStore("shop")
	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		for _, consumer := range []string{"shipping", "invoicing", "shipping"} {
			claimed, err := store.Claim(ctx, tx, consumer, "evt_1")
			if err != nil {
				return err
			}
			fmt.Println(consumer, claimed)
		}
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// shipping true
	// invoicing true
	// shipping false
}

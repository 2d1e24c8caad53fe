package dedup_test

import (
	"context"
	"fmt"
	"log"

	"github.com/semel-go/semel/dedup"
	"github.com/semel-go/semel/internal/exampledb"
)

// A consumer is stored under a number made of its name. Whoever uses Claim alone
// registers the name at start: then people can read it, and two names with one
// number are found out.
func ExampleRegister() {
	ctx := context.Background()
	pool, done := exampledb.Open()
	defer done()

	if err := dedup.Register(ctx, pool, "shipping"); err != nil {
		log.Fatal(err)
	}
	var id int32
	if err := pool.QueryRow(ctx, `SELECT id FROM semel.consumers WHERE name = 'shipping'`).Scan(&id); err != nil {
		log.Fatal(err)
	}
	fmt.Println(id, dedup.ConsumerID("shipping"))
	// Output:
	// 855548666 855548666
}

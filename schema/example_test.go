package schema_test

import (
	"context"
	"fmt"
	"log"

	"github.com/semel-go/semel/internal/exampledb"
	"github.com/semel-go/semel/schema"
)

// A service that makes its tables itself, when it starts. Any number of
// processes may do so at once.
func ExampleUp() {
	ctx := context.Background()
	pool, done := exampledb.Open()
	defer done()

	for range 2 {
		applied, err := schema.Up(ctx, pool, "shop", 0) // to the newest
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("anything to do:", len(applied) > 0)
	}
	fmt.Println(schema.Check(ctx, pool, "shop"))
	// Output:
	// anything to do: true
	// anything to do: false
	// <nil>
}

package inbox_test

import (
	"context"
	"fmt"
	"log"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
	"github.com/semel-go/semel/internal/exampledb"
	"github.com/semel-go/semel/transports/memory"
)

// A queue in memory, for a test of one's own handler: here a message comes
// twice and takes effect once.
func ExampleInbox_Run_memory() {
	ctx, stop := context.WithCancel(context.Background())
	pool, done := exampledb.Open()
	defer done()
	in, err := inbox.New(pool, "shipping", func(ctx context.Context, tx pgx.Tx, _ *handler.Message) error {
		_, err := tx.Exec(ctx, `UPDATE orders SET status = status || ', PAID' WHERE id = 42`)
		return err
	}, inbox.Config{})
	if err != nil {
		log.Fatal(err)
	}

	queue := memory.NewQueue("payments")
	queue.Publish(ctx, []*handler.Message{{ID: "evt_1"}, {ID: "evt_1"}})
	go func() {
		_ = queue.Wait(ctx) // until both are settled
		stop()
	}()
	if err := in.Run(ctx, memory.NewSource(queue)); err != nil {
		log.Fatal(err)
	}
	fmt.Println("order 42 is", exampledb.Status(pool, 42))
	// Output:
	// order 42 is NEW, PAID
}

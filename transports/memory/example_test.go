package memory_test

import (
	"context"
	"fmt"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/transports/memory"
)

// A source hands messages to a sink, which is the engine in a real program.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	queue := memory.NewQueue("payments")
	queue.Publish(ctx, []*handler.Message{
		{ID: "evt_1", Type: "order.paid"},
		{ID: "evt_2", Type: "order.refunded"},
	})

	done := make(chan error)
	go func() {
		done <- memory.NewSource(queue).Run(ctx, sinkFunc(func(_ context.Context, d *handler.Delivery) error {
			fmt.Println(d.Message.Origin.Topic, d.Message.ID, d.Message.Type)
			d.Settled()
			return nil
		}))
	}()
	if err := queue.Wait(ctx); err != nil { // until both are settled
		fmt.Println(err)
	}
	stop()
	fmt.Println(<-done)
	// Output:
	// payments evt_1 order.paid
	// payments evt_2 order.refunded
	// <nil>
}

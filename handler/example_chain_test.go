package handler_test

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/handler"
)

// Middleware runs inside the transaction; the first one listed runs first.
func ExampleChain() {
	ship := func(_ context.Context, _ pgx.Tx, msg *handler.Message) error {
		fmt.Println("ship", msg.ID)
		return nil
	}
	h := handler.Chain(ship,
		handler.Log(nil),
		handler.MaxPayload(1<<10),
		handler.Timeout(5*time.Second),
	)

	ctx := context.Background()
	fmt.Println(h(ctx, nil, &handler.Message{ID: "evt_1"}))
	fmt.Println(h(ctx, nil, &handler.Message{ID: "evt_2", Payload: make([]byte, 2<<10)}))
	// Output:
	// ship evt_1
	// <nil>
	// payload too large: 2048 bytes, limit 1024
}

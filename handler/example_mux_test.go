package handler_test

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/handler"
)

// One consumer, several message types; what it does not care about is ignored.
func ExampleMux() {
	say := func(text string) handler.Func {
		return func(_ context.Context, _ pgx.Tx, msg *handler.Message) error {
			fmt.Println(msg.ID, text)
			return nil
		}
	}
	h := handler.Mux(map[string]handler.Func{
		"order.paid":     say("ships"),
		"order.refunded": say("comes back"),
	}, say("is ignored"))

	ctx := context.Background()
	_ = h(ctx, nil, &handler.Message{ID: "evt_1", Type: "order.paid"})
	_ = h(ctx, nil, &handler.Message{ID: "evt_2", Type: "order.refunded"})
	_ = h(ctx, nil, &handler.Message{ID: "evt_3", Type: "order.viewed"})
	// Output:
	// evt_1 ships
	// evt_2 comes back
	// evt_3 is ignored
}

package handler_test

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/handler"
)

// A middleware of one's own: what belongs to another tenant does not reach the
// handler. It runs in the transaction and may write through it too.
func ExampleMiddleware() {
	only := func(tenant string) handler.Middleware {
		return func(next handler.Func) handler.Func {
			return func(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
				if value, _ := msg.Headers.First("tenant"); string(value) != tenant {
					return nil
				}
				return next(ctx, tx, msg)
			}
		}
	}
	h := handler.Chain(func(_ context.Context, _ pgx.Tx, msg *handler.Message) error {
		fmt.Println("ship", msg.ID)
		return nil
	}, only("books"))

	for _, tenant := range []string{"books", "shoes"} {
		headers := handler.Headers{{Name: "tenant", Value: []byte(tenant)}}
		err := h(context.Background(), nil, &handler.Message{ID: tenant + "_1", Headers: headers})
		fmt.Println(err)
	}
	// Output:
	// ship books_1
	// <nil>
	// <nil>
}

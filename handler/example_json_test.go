package handler_test

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/handler"
)

// A payload that cannot be decoded never reaches the handler: it goes to the
// dead letters, and its error says where it is wrong without showing it.
func ExampleJSON() {
	type Order struct {
		ID    int64  `json:"id"`
		Total string `json:"total"`
	}
	h := handler.JSON(func(_ context.Context, _ pgx.Tx, order Order, msg *handler.Message) error {
		fmt.Printf("%s: order %d, total %s\n", msg.ID, order.ID, order.Total)
		return nil
	})

	ctx := context.Background()
	_ = h(ctx, nil, &handler.Message{ID: "evt_1", Payload: []byte(`{"id": 42, "total": "19.90"}`)})
	err := h(ctx, nil, &handler.Message{ID: "evt_2", Payload: []byte(`{"id": 43, "total": 19.90}`)})
	fmt.Println(err)
	fmt.Println("permanent:", handler.IsPermanent(err))
	// Output:
	// evt_1: order 42, total 19.90
	// decode 26 bytes of JSON into handler_test.Order: payload cannot be decoded: a JSON number where field total has a string, at byte 25
	// permanent: true
}

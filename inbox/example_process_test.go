package inbox_test

import (
	"context"
	"fmt"
	"log"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
	"github.com/semel-go/semel/internal/exampledb"
)

// arrival is a message of anybody's client.
type arrival struct {
	ID, Type string
	Body     []byte
}

func (a arrival) Ack()  { fmt.Println("ack", a.ID) }
func (a arrival) Nack() { fmt.Println("nack", a.ID) }

// In a consumer loop of one's own, without our transports.
func ExampleInbox_Process() {
	ctx := context.Background()
	pool, done := exampledb.Open()
	defer done()
	in, err := inbox.New(pool, "shipping", func(_ context.Context, _ pgx.Tx, msg *handler.Message) error {
		fmt.Println("ship", string(msg.Payload))
		return nil
	}, inbox.Config{})
	if err != nil {
		log.Fatal(err)
	}

	arrivals := slices.Values([]arrival{
		{ID: "evt_1", Type: "order.paid", Body: []byte("order 42")},
		{ID: "evt_1", Type: "order.paid", Body: []byte("order 42")},
	})
	for a := range arrivals {
		_, err := in.Process(ctx, &handler.Message{ID: a.ID, Type: a.Type, Payload: a.Body})
		if err != nil {
			a.Nack() // not settled: it must come again
			continue
		}
		a.Ack() // settled: its outcome is committed
	}
	// Output:
	// ship order 42
	// ack evt_1
	// ack evt_1
}

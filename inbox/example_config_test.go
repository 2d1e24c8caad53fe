package inbox_test

import (
	"context"
	"fmt"
	"log"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
	"github.com/semel-go/semel/internal/exampledb"
)

// Producers without usable ids: a natural key takes their place. A resend that
// carries a new delivery time is still the same message.
func ExampleConfig() {
	ctx := context.Background()
	pool, done := exampledb.Open()
	defer done()
	book := func(context.Context, pgx.Tx, *handler.Message) error { return nil }

	config := inbox.Config{
		ID: func(msg *handler.Message) (string, error) {
			number, _ := msg.Headers.First("invoice-number")
			return string(number), nil // empty is a bad id: the message goes to the dead letters
		},
		Fingerprint: func(msg *handler.Message) []byte {
			number, _ := msg.Headers.First("invoice-number")
			return number
		},
	}
	in, err := inbox.New(pool, "invoicing", book, config)
	if err != nil {
		log.Fatal(err)
	}

	headers := handler.Headers{{Name: "invoice-number", Value: []byte("2026-0017")}}
	for _, payload := range []string{`{"sent": "09:00"}`, `{"sent": "09:05"}`} {
		outcome, err := in.Process(ctx, &handler.Message{Headers: headers, Payload: []byte(payload)})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(outcome)
	}
	// Output:
	// processed
	// duplicate
}

package calls_test

import (
	"context"
	"fmt"
	"log"

	"github.com/semel-go/semel/dedup"
	"github.com/semel-go/semel/dedup/calls"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/internal/exampledb"
)

// A provider without idempotency keys is asked for our own number of the invoice,
// and gets it only if it does not have it.
func ExampleOptions_askFirst() {
	pool, done := exampledb.Open()
	defer done()
	ledger, err := calls.New(pool, calls.Config{})
	if err != nil {
		log.Fatal(err)
	}
	provider := map[string]string{"R-42": "sent"} // by somebody else
	options := calls.Options{
		AskFirst: true,
		Key:      func(c calls.Call) string { return "R-" + c.Message },
		WasItDone: func(_ context.Context, c calls.Call) ([]byte, calls.Answer, error) {
			status, found := provider[c.Key]
			if !found {
				return nil, calls.No, nil
			}
			return []byte(status), calls.Yes, nil
		},
	}
	send := func(_ context.Context, key string) ([]byte, error) {
		fmt.Println("send", key)
		return []byte("sent now"), nil
	}

	for _, id := range []string{"42", "43"} {
		msg := &handler.Message{ID: id}
		// What the engine gives to Prepare.
		ctx := handler.WithCause(context.Background(), &handler.Cause{Consumer: "billing", Message: msg, MessageID: dedup.MessageID(id)})
		result, err := ledger.Do(ctx, msg, "send-invoice", send, options)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(id, string(result))
	}
	// Output:
	// 42 sent
	// send R-43
	// 43 sent now
}

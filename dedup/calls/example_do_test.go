package calls_test

import (
	"context"
	"fmt"
	"log"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/dedup/calls"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
	"github.com/semel-go/semel/internal/exampledb"
)

// An invoice is made at a provider that knows idempotency keys, before the
// transaction; its number is written in the transaction.
func ExampleLedger_Do() {
	ctx := context.Background()
	pool, done := exampledb.Open()
	defer done()

	ledger, err := calls.New(pool, calls.Config{})
	if err != nil {
		log.Fatal(err)
	}
	prepare := func(ctx context.Context, msg *handler.Message) error {
		_, err := ledger.Do(ctx, msg, "create-invoice", func(ctx context.Context, key string) ([]byte, error) {
			return createInvoice(ctx, key, msg.Payload)
		}, calls.Options{})
		return err
	}
	handle := func(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
		number, err := ledger.Result(ctx, tx, msg, "create-invoice")
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `UPDATE orders SET status = $1 WHERE id = 42`, string(number))
		return err
	}
	in, err := inbox.New(pool, "billing", handle, inbox.Config{Prepare: prepare})
	if err != nil {
		log.Fatal(err)
	}

	for range 2 { // delivered twice
		outcome, err := in.Process(ctx, &handler.Message{ID: "evt_1", Payload: []byte(`{"order":42}`)})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(outcome)
	}
	fmt.Println(exampledb.Status(pool, 42))
	// Output:
	// POST /invoices, Idempotency-Key: 0854ba94-5d0c-8dff-8984-8156e7a83396
	// processed
	// duplicate
	// INV-7
}

// createInvoice stands for an HTTP request.
func createInvoice(_ context.Context, key string, _ []byte) ([]byte, error) {
	fmt.Println("POST /invoices, Idempotency-Key:", key)
	return []byte("INV-7"), nil
}

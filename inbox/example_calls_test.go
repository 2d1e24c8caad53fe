package inbox_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/breaker"
	"github.com/semel-go/semel/breaker/httpbreaker"
	"github.com/semel-go/semel/dedup/calls"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
	"github.com/semel-go/semel/internal/exampledb"
)

// A message that has a payment captured at a provider, once.
func ExampleConfig_prepare() {
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Println("the provider is asked for a capture, under a key:", r.Header.Get("Idempotency-Key") != "")
		fmt.Fprint(w, "PAID")
	}))
	defer provider.Close()
	ctx := context.Background()
	pool, done := exampledb.Open()
	defer done()

	transport := httpbreaker.New(httpbreaker.Config{})
	client := transport.Client()
	ledger, err := calls.New(pool, calls.Config{})
	if err != nil {
		log.Fatal(err)
	}
	send := func(msg *handler.Message) calls.Func {
		return func(ctx context.Context, key string) ([]byte, error) {
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, provider.URL+"/captures", bytes.NewReader(msg.Payload))
			if err != nil {
				return nil, err
			}
			req.Header.Set("Idempotency-Key", key)
			resp, err := client.Do(req)
			if err != nil {
				return nil, err
			}
			if err := httpbreaker.Check(resp); err != nil {
				return nil, err // the message's fault, or theirs, or later
			}
			defer resp.Body.Close() //nolint:errcheck // it was only read
			return io.ReadAll(resp.Body)
		}
	}
	captured := func(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
		status, err := ledger.Result(ctx, tx, msg, "capture")
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `UPDATE orders SET status = $1 WHERE id = 42`, string(status))
		return err
	}
	in, err := inbox.New(pool, "captures", captured, inbox.Config{
		Prepare: func(ctx context.Context, msg *handler.Message) error {
			_, err := ledger.Do(ctx, msg, "capture", send(msg), calls.Options{})
			return err
		},
		Gates: []*breaker.Breaker{transport.Breaker("api.provider.example")},
	})
	if err != nil {
		log.Fatal(err)
	}

	for range 2 {
		outcome, err := in.Process(ctx, &handler.Message{ID: "evt_1", Payload: []byte(`{"amount":1999}`)})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(outcome, exampledb.Status(pool, 42))
	}
	// Output:
	// the provider is asked for a capture, under a key: true
	// processed PAID
	// duplicate PAID
}

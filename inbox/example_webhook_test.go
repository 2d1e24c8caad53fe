package inbox_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
	"github.com/semel-go/semel/internal/exampledb"
	"github.com/semel-go/semel/transports/webhook"
)

// A provider calls back, twice. Each time it has its answer as soon as the callback
// is stored, and the order is paid once.
func ExampleInbox_Work_webhook() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	pool, done := exampledb.Open()
	defer done()
	in, err := inbox.New(pool, "payments", handler.JSON(func(ctx context.Context, tx pgx.Tx, event struct{ Order int64 }, msg *handler.Message) error {
		_, err := tx.Exec(ctx, `UPDATE orders SET status = 'PAID' WHERE id = $1`, event.Order)
		return err
	}), inbox.Config{})
	if err != nil {
		log.Fatal(err)
	}
	secret, mux := "whsec_example_not_a_real_secret", http.NewServeMux()

	hook, err := webhook.NewHandler(in, webhook.Stripe(secret), webhook.Config{})
	if err != nil {
		log.Fatal(err)
	}
	mux.Handle("POST /webhooks/stripe", hook)

	for range 2 {
		r := httptest.NewRequest("POST", "/webhooks/stripe", strings.NewReader(`{"id":"evt_1","type":"charge.succeeded","order":42}`))
		r.Header.Set("Content-Type", "application/json")
		if err := webhook.Stripe(secret).Sign(r, time.Now()); err != nil {
			log.Fatal(err)
		}
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		fmt.Println(w.Code)
	}
	go func() {
		exampledb.Await(pool, 42, "PAID")
		stop()
	}()
	if err := in.Work(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println("order 42 is", exampledb.Status(pool, 42))
	// Output:
	// 200
	// 200
	// order 42 is PAID
}

package calls_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/semel-go/semel/dedup"
	"github.com/semel-go/semel/dedup/calls"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/internal/exampledb"
)

// A person has looked at the provider, as with semel calls resolve.
func ExampleStore_Resolve() {
	ctx := context.Background()
	pool, done := exampledb.Open()
	defer done()
	ledger, err := calls.New(pool, calls.Config{})
	if err != nil {
		log.Fatal(err)
	}
	msg := &handler.Message{ID: "evt_1"}
	prepared := handler.WithCause(ctx, &handler.Cause{Consumer: "billing", Message: msg, MessageID: dedup.MessageID(msg.ID)})
	lost := func(context.Context, string) ([]byte, error) { return nil, handler.ErrCallUnknown }
	_, err = ledger.Do(prepared, msg, "create-invoice", lost, calls.Options{})
	fmt.Println(errors.Is(err, handler.ErrCallUnknown), handler.IsPermanent(err))

	store := calls.Store{}
	if _, err := pool.Exec(ctx, `UPDATE semel.calls SET deadline = now()`); err != nil { // the call may be under way for a while
		log.Fatal(err)
	}
	open, err := store.List(ctx, pool, calls.Filter{Open: true})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(open[0].Message, open[0].Step, open[0].State)
	changed, err := store.Resolve(ctx, pool, calls.Resolution{Decision: calls.WasDone, Result: []byte("INV-7"), By: "ann"}, open[0].Ref)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(changed))

	number, err := ledger.Do(prepared, msg, "create-invoice", lost, calls.Options{}) // the replay
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(number))
	// Output:
	// true true
	// evt_1 create-invoice unknown
	// 1
	// INV-7
}

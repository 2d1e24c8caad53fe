package main

import (
	"context"

	"github.com/semel-go/semel/bench/byhand"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
)

// strict is inline with the order of keys kept past failures, while nothing waits
// in the inbox: each message pays for the look.
func (b *bench) strict(ctx context.Context) (result, error) {
	db, err := newDatabase(ctx, workers)
	if err != nil {
		return result{}, err
	}
	defer db.drop()
	in, err := inbox.New(db.pool, "bench", work, inbox.Config{Schema: db.schema, Logger: silent(), Ordering: inbox.Strict})
	if err != nil {
		return result{}, err
	}
	floor := &byhand.Consumer{Pool: db.pool, ID: consumerID, Work: work}
	return b.sameLoad(ctx, workers, fresh, expect(handler.Processed, in.Process), handledByHand(floor))
}

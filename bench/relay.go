package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/handler"
)

// batch is how many events are taken at once, unless a benchmark says
// otherwise.
const batch = 100

// brokerBatch is batch where a broker confirms: all relays together have a
// window of unconfirmed events.
const brokerBatch = confirmWindow / instances

// relayDB compares the database's side of relays with SKIP LOCKED by hand, both
// at one batch size.
func (b *bench) relayDB(ctx context.Context) (result, error) {
	return b.againstSkipLocked(ctx, newMessage)
}

// relayHot is relayDB where most events are of one aggregate: one relay has them
// all, while workers by hand, who keep no order, share them.
func (b *bench) relayHot(ctx context.Context) (result, error) {
	r, err := b.againstSkipLocked(ctx, newHotMessage)
	r.details = append(r.details, "9 of 10 of one aggregate")
	return r, err
}

func (b *bench) againstSkipLocked(ctx context.Context, next func() *handler.Message) (result, error) {
	db, err := newDatabase(ctx, fleetConns)
	if err != nil {
		return result{}, err
	}
	defer db.drop()
	l, err := db.newBacklog(ctx, "backlog", b.events, next)
	if err != nil {
		return result{}, err
	}
	r, err := b.pairs(ctx, side{"relays", l.relayed(batch, nulls())}, side{"by hand", l.drainedByHand(batch)})
	r.details = append(r.details, fmt.Sprintf("%d of each, batch %d, %d events of %d bytes", instances, batch, b.events, payloadBytes))
	return r, err
}

// batches are the sizes among which each side finds its best.
var batches = [...]int{100, 200, 500, 1000}

// relayBest compares both sides at the batch size that suits each best.
func (b *bench) relayBest(ctx context.Context) (result, error) {
	db, err := newDatabase(ctx, fleetConns)
	if err != nil {
		return result{}, err
	}
	defer db.drop()
	l, err := db.newBacklog(ctx, "backlog", b.events, newMessage)
	if err != nil {
		return result{}, err
	}
	relayed := func(batch int) func(context.Context) (float64, error) { return l.relayed(batch, nulls()) }
	ours, ourTries, err := bestBatch(ctx, relayed)
	if err != nil {
		return result{}, fmt.Errorf("find the best batch size of relays: %w", err)
	}
	theirs, theirTries, err := bestBatch(ctx, l.drainedByHand)
	if err != nil {
		return result{}, fmt.Errorf("find the best batch size by hand: %w", err)
	}
	r, err := b.pairs(ctx, side{"relays", relayed(ours)}, side{"by hand", l.drainedByHand(theirs)})
	r.details = append(r.details, fmt.Sprintf("best of %v: relays %d %.0f, by hand %d %.0f", batches, ours, ourTries, theirs, theirTries))
	return r, err
}

// bestBatch tries each size once.
func bestBatch(ctx context.Context, sized func(batch int) func(context.Context) (float64, error)) (best int, rates []float64, err error) {
	highest := 0.0
	for _, size := range batches {
		rate, err := sized(size)(ctx)
		if err != nil {
			return 0, nil, fmt.Errorf("batches of %d: %w", size, err)
		}
		rates = append(rates, rate)
		if rate > highest {
			best, highest = size, rate
		}
	}
	return best, rates, nil
}

// relayHeld compares relays while somebody holds a snapshot, so that nothing
// they leave behind can be cleaned away, with relays while nobody does.
func (b *bench) relayHeld(ctx context.Context) (result, error) {
	db, err := newDatabase(ctx, fleetConns)
	if err != nil {
		return result{}, err
	}
	defer db.drop()
	n := b.events / 2
	l, err := db.newBacklog(ctx, "backlog", n, newMessage)
	if err != nil {
		return result{}, err
	}
	r, err := b.pairs(ctx,
		side{"held", l.relayedAfter(batch, nulls(), db.holdSnapshot)},
		side{"free", l.relayed(batch, nulls())})
	r.details = append(r.details, fmt.Sprintf("%d relays, batch %d, a REPEATABLE READ snapshot is held during %d events", instances, batch, n))
	return r, err
}

// holdSnapshot holds a snapshot until it is released.
func (db *database) holdSnapshot(ctx context.Context) (release func(), err error) {
	tx, err := db.pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		return nil, fmt.Errorf("hold a snapshot: %w", err)
	}
	release = func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		_ = tx.Rollback(ctx)
	}
	if _, err := tx.Exec(ctx, `SELECT count(*) FROM accounts WHERE id = 1`); err != nil { // the first statement takes it
		release()
		return nil, fmt.Errorf("hold a snapshot: %w", err)
	}
	return release, nil
}

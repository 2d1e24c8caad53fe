package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel/bench/byhand"
	"github.com/semel-go/semel/handler"
)

// consumerID is the baseline's number for its consumer.
const consumerID = 1

// inline compares Process with the same transaction written by hand.
func (b *bench) inline(ctx context.Context) (result, error) {
	db, err := newDatabase(ctx, workers)
	if err != nil {
		return result{}, err
	}
	defer db.drop()
	return b.againstByHand(ctx, db, db.pool, workers)
}

// remoteWorkers is fewer than workers: with a network between, the round trips
// are what is waited for, not the disk.
const remoteWorkers = 8

// remote is inline with a database half a millisecond away.
func (b *bench) remote(ctx context.Context) (result, error) {
	// Who waits in a system call keeps its processor until the scheduler notices.
	// With enough of them nobody waits for that, which would add to each trip.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(remoteWorkers + runtime.NumCPU()))
	db, err := newDatabase(ctx, remoteWorkers)
	if err != nil {
		return result{}, err
	}
	defer db.drop()
	pool, err := newPool(ctx, db.schema, remoteWorkers, dialWithDelay)
	if err != nil {
		return result{}, err
	}
	defer pool.Close()
	r, err := b.againstByHand(ctx, db, pool, remoteWorkers)
	r.details = append(r.details, fmt.Sprintf("%s added to each round trip", tripDelay))
	return r, err
}

func (b *bench) againstByHand(ctx context.Context, db *database, pool *pgxpool.Pool, n int) (result, error) {
	in, err := db.inbox(pool, "bench", work, nil)
	if err != nil {
		return result{}, err
	}
	floor := &byhand.Consumer{Pool: pool, ID: consumerID, Work: work}
	return b.sameLoad(ctx, n, fresh, expect(handler.Processed, in.Process), handledByHand(floor))
}

// duplicate compares how soon a message is known to be settled: ids that were
// handled once come again and again, no two of one id at a time.
func (b *bench) duplicate(ctx context.Context) (result, error) {
	db, err := newDatabase(ctx, workers)
	if err != nil {
		return result{}, err
	}
	defer db.drop()
	in, err := db.inbox(db.pool, "bench", work, nil)
	if err != nil {
		return result{}, err
	}
	floor := &byhand.Consumer{Pool: db.pool, ID: consumerID, Work: work}

	const each = 500
	settled := newMessages(workers * each)
	for _, handle := range []handleFunc{expect(handler.Processed, in.Process), handledByHand(floor)} {
		if _, err := handleAll(ctx, workers, settled, handle); err != nil {
			return result{}, err
		}
	}
	again := func(worker int) func() *handler.Message {
		own, i := settled[worker*each:(worker+1)*each], 0
		return func() *handler.Message {
			i++
			return own[i%each]
		}
	}
	return b.sameLoad(ctx, workers, again, expect(handler.Duplicate, in.Process), refusedByHand(floor))
}

// sameLoad measures two ways to handle the same kind of messages. A short
// round of each before makes the connections and prepares the statements.
func (b *bench) sameLoad(ctx context.Context, n int, next func(int) func() *handler.Message, semel, hand handleFunc) (result, error) {
	loaded := func(name string, handle handleFunc) side {
		return side{name, func(ctx context.Context) (float64, error) { return rate(ctx, n, b.round, next, handle) }}
	}
	for _, handle := range []handleFunc{semel, hand} {
		if _, err := rate(ctx, n, min(b.round, time.Second), next, handle); err != nil {
			return result{}, fmt.Errorf("warm up: %w", err)
		}
	}
	r, err := b.pairs(ctx, loaded("semel", semel), loaded("by hand", hand))
	r.details = append(r.details, fmt.Sprintf("%d workers", n))
	return r, err
}

var (
	errNotFresh = errors.New("by hand: a fresh message was taken for a duplicate")
	errFresh    = errors.New("by hand: a duplicate was taken for a fresh message")
)

func handledByHand(c *byhand.Consumer) handleFunc {
	return func(ctx context.Context, msg *handler.Message) error {
		fresh, err := c.Handle(ctx, msg)
		if err == nil && !fresh {
			err = errNotFresh
		}
		return err
	}
}

func refusedByHand(c *byhand.Consumer) handleFunc {
	return func(ctx context.Context, msg *handler.Message) error {
		fresh, err := c.Handle(ctx, msg)
		if err == nil && fresh {
			err = errFresh
		}
		return err
	}
}

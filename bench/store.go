package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/semel-go/semel/bench/byhand"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
)

const (
	// storers write into the inbox at once.
	storers = 4

	// storedAtOnce is how many messages go into one transaction, on both sides.
	storedAtOnce = 1000
)

// storeBulk compares StoreAll, which claims each message too, with COPY of the
// same messages into the same table.
func (b *bench) storeBulk(ctx context.Context) (result, error) {
	db, err := newDatabase(ctx, workers)
	if err != nil {
		return result{}, err
	}
	defer db.drop()
	in, err := db.inbox(db.pool, "bench", work, nil)
	if err != nil {
		return result{}, err
	}
	hand := &byhand.Inbox{Pool: db.pool, ID: consumerID}
	stored := func(ctx context.Context, msgs []*handler.Message) error {
		outcomes, err := in.StoreAll(ctx, msgs)
		for i, outcome := range outcomes {
			if outcome != handler.Stored {
				return fmt.Errorf("message %s is %s, want %s", msgs[i].ID, outcome, handler.Stored)
			}
		}
		return err
	}
	bulk := func(name string, store func(context.Context, []*handler.Message) error) side {
		return side{name, func(ctx context.Context) (float64, error) {
			if err := db.exec(ctx, `TRUNCATE inbox_messages, processed_messages`); err != nil {
				return 0, err
			}
			r, err := rate(ctx, storers, b.round, nothing, func(ctx context.Context, m *handler.Message) error { return store(ctx, newMessages(storedAtOnce)) })
			return r * storedAtOnce, err
		}}
	}
	r, err := b.pairs(ctx, bulk("semel", stored), bulk("COPY", hand.Copy))
	r.details = append(r.details, fmt.Sprintf("%d writers, %d messages of %d bytes in a transaction", storers, storedAtOnce, payloadBytes))
	return r, err
}

// nothing is a source of nothing: each call makes its own messages.
func nothing(int) func() *handler.Message { return func() *handler.Message { return nil } }

// storedAhead is how many messages may wait in the inbox while it is measured
// how fast they go through.
const storedAhead = 1000

// storedToEffect compares the way through the inbox, one Store for each message to
// its committed effect, with Process.
func (b *bench) storedToEffect(ctx context.Context) (result, error) {
	db, err := newDatabase(ctx, workers)
	if err != nil {
		return result{}, err
	}
	defer db.drop()
	in, err := db.inbox(db.pool, "bench", work, nil)
	if err != nil {
		return result{}, err
	}
	through := side{"semel, stored", func(ctx context.Context) (float64, error) { return b.throughInbox(ctx, in) }}
	inline := side{"semel, inline", func(ctx context.Context) (float64, error) {
		return rate(ctx, workers, b.round, fresh, expect(handler.Processed, in.Process))
	}}
	for _, s := range []side{through, inline} {
		if _, err := s.measure(ctx); err != nil {
			return result{}, fmt.Errorf("warm up: %w", err)
		}
	}
	r, err := b.pairs(ctx, through, inline)
	r.details = append(r.details, fmt.Sprintf("%d who store and %d workers in one process, at most %d waiting", workers, workers, storedAhead))
	return r, err
}

// throughInbox stores and works at once, and returns at what rate messages took
// effect.
func (b *bench) throughInbox(ctx context.Context, in *inbox.Inbox) (rate float64, err error) {
	ctx, stop := context.WithCancel(ctx)
	group, run := errgroup.WithContext(ctx)
	defer func() {
		stop()
		if end := group.Wait(); !errors.Is(end, context.Canceled) {
			err = errors.Join(err, end)
		}
	}()
	group.Go(func() error { return in.Work(run) })
	handled := in.Stats().Processed
	var stored atomic.Int64
	store := expect(handler.Stored, in.Store)
	began := time.Now()
	for range workers {
		group.Go(func() error {
			for time.Since(began) < b.round {
				if stored.Load()-(in.Stats().Processed-handled) > storedAhead {
					time.Sleep(time.Millisecond) // the workers are behind
					continue
				}
				if err := store(run, newMessage()); err != nil {
					return err
				}
				stored.Add(1)
			}
			return nil
		})
	}
	patience := time.NewTimer(b.round + drainPatience)
	defer patience.Stop()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-run.Done():
			return 0, context.Cause(run)
		case <-patience.C:
			return 0, fmt.Errorf("%d messages were stored and %d of them handled, and for %s no more", stored.Load(), in.Stats().Processed-handled, drainPatience)
		case <-tick.C:
		}
		if done := in.Stats().Processed - handled; time.Since(began) > b.round && done >= stored.Load() {
			return float64(done) / time.Since(began).Seconds(), nil
		}
	}
}

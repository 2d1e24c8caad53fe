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
)

// drainPatience is how long a drain may stand still.
const drainPatience = time.Minute

// relayed is a side that publishes a backlog with relays of Semel.
func (l *backlog) relayed(batch int, publishers []handler.Publisher) func(context.Context) (float64, error) {
	return l.relayedAfter(batch, publishers, func(context.Context) (func(), error) { return func() {}, nil })
}

// relayedAfter is relayed; before is done when the table is filled, and undone
// at the end.
func (l *backlog) relayedAfter(batch int, publishers []handler.Publisher, before func(context.Context) (undo func(), err error)) func(context.Context) (float64, error) {
	return func(ctx context.Context) (rate float64, err error) {
		if err := l.db.exec(ctx, `TRUNCATE outbox`); err != nil {
			return 0, err
		}
		f, err := l.db.startFleet(ctx, l.db.pool, batch, publishers)
		if err != nil {
			return 0, err
		}
		defer func() { err = errors.Join(err, f.end()) }()
		if err := l.inOutbox(ctx); err != nil {
			return 0, err
		}
		undo, err := before(ctx)
		if err != nil {
			return 0, err
		}
		defer undo()
		f.open()
		return steady(f.run, l.n, f.sent)
	}
}

// drainedByHand is a side that publishes a backlog with as many workers by hand.
func (l *backlog) drainedByHand(batch int) func(context.Context) (float64, error) {
	return func(ctx context.Context) (rate float64, err error) {
		if err := l.inTableByHand(ctx); err != nil {
			return 0, err
		}
		ctx, stop := context.WithCancel(ctx)
		group, run := errgroup.WithContext(ctx)
		defer func() {
			stop()
			err = errors.Join(err, group.Wait())
		}()
		var sent atomic.Int64
		hand := &byhand.Relay{Pool: l.db.pool, Batch: batch, Publisher: null{}}
		for range instances {
			group.Go(func() error {
				for {
					n, err := hand.Next(run)
					switch {
					case ctx.Err() != nil: // stopped
						return nil
					case err != nil:
						return err
					case n == 0:
						return nil
					}
					sent.Add(int64(n))
				}
			})
		}
		return steady(run, l.n, sent.Load)
	}
}

// steady is at what rate a backlog of n shrinks between its first tenth and its
// last one: neither the start is in it, nor the end, when some have run dry.
func steady(ctx context.Context, n int, done func() int64) (float64, error) {
	from, to := int64(n/10), int64(n-n/10)
	var began, moved time.Time
	first, last := int64(0), int64(-1)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		now, count := time.Now(), done()
		if count != last {
			moved, last = now, count
		}
		switch {
		case began.IsZero() && count >= from:
			began, first = now, count
		case count < to && now.Sub(moved) > drainPatience:
			return 0, fmt.Errorf("%d of %d events were published, and for %s no more", count, n, drainPatience)
		}
		if count >= to {
			if count == first {
				return 0, fmt.Errorf("%d events are too few to measure a rate: raise -events or -messages", n)
			}
			return float64(count-first) / now.Sub(began).Seconds(), nil
		}
		select {
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		case <-tick.C:
		}
	}
}

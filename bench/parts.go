package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/semel-go/semel/bench/byhand"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
)

// broker is one topic, or one queue, whose messages are taken again and again.
type broker interface {
	// client names the plain client, for people.
	client() string

	// fill sees to it that whoever reads next gets all messages.
	fill(ctx context.Context) error

	// move takes n messages with the plain client, acknowledges them, and leaves.
	move(ctx context.Context, n int) error

	// source is a new reader for Run.
	source() handler.Source
}

// parts compares a whole Run with its two parts, each measured alone: moving
// the messages with the plain client, and doing their work by hand. Both need
// the same cores, so what is possible is one after the other.
func (b *bench) parts(ctx context.Context, db *database, k broker, msgs []*handler.Message) (result, error) {
	var moved, worked []float64
	var consumer int // a new one each round: the ids are the same
	parts := side{"parts", func(ctx context.Context) (float64, error) {
		if err := k.fill(ctx); err != nil {
			return 0, err
		}
		move, err := timed(len(msgs), func() error { return k.move(ctx, len(msgs)) })
		if err != nil {
			return 0, fmt.Errorf("move with %s: %w", k.client(), err)
		}
		consumer++
		hand := &byhand.Consumer{Pool: db.pool, ID: int32(consumer), Work: work}
		work, err := handleAll(ctx, workers, msgs, handledByHand(hand))
		if err != nil {
			return 0, fmt.Errorf("work by hand: %w", err)
		}
		moved, worked = append(moved, move), append(worked, work)
		return oneAfterTheOther(move, work), nil
	}}
	whole := side{"Run", func(ctx context.Context) (float64, error) {
		if err := k.fill(ctx); err != nil {
			return 0, err
		}
		consumer++
		return timed(len(msgs), func() error { return runAll(ctx, db, consumer, k.source(), len(msgs)) })
	}}
	r, err := b.pairs(ctx, whole, parts)
	r.details = append(r.details,
		fmt.Sprintf("[%s alone %.0f/s, by hand alone %.0f/s]", k.client(), median(moved), median(worked)),
		fmt.Sprintf("%d messages of %d bytes, %d workers", len(msgs), payloadBytes, workers))
	return r, err
}

// runAll runs a source until n of its messages are settled and acknowledged.
func runAll(ctx context.Context, db *database, consumer int, src handler.Source, n int) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	in, err := db.inbox(db.pool, fmt.Sprintf("bench %d", consumer), work, countdown(n, cancel))
	if err != nil {
		return err
	}
	if err := in.Run(ctx, src); err != nil {
		return err
	}
	if got := in.Stats().Processed; got < int64(n) {
		return fmt.Errorf("run ended after %d of %d messages: %w", got, n, context.Cause(ctx))
	}
	return nil
}

// countdown is an observer that calls done when n messages are settled.
func countdown(n int, done func()) inbox.Observer {
	var settled atomic.Int64
	return inbox.ObserverFunc(func(_ context.Context, e inbox.Event) {
		if e.Kind == inbox.Settled && settled.Add(1) == int64(n) {
			done()
		}
	})
}

// timed is at what rate f does n things.
func timed(n int, f func() error) (float64, error) {
	began := time.Now()
	if err := f(); err != nil {
		return 0, err
	}
	return float64(n) / time.Since(began).Seconds(), nil
}

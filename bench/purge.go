package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/semel-go/semel/outbox"
)

// purgeWriters compares how long writers wait while published events are purged
// with how long they wait while the same purge rests, once in each pair.
func (b *bench) purgeWriters(ctx context.Context) (result, error) {
	db, err := newDatabase(ctx, manyWriters)
	if err != nil {
		return result{}, err
	}
	defer db.drop()
	if err := db.writeMany(ctx, b.pending, "now() - interval '1 day'"); err != nil {
		return result{}, err
	}
	write := db.writeEvent()
	if _, err := rate(ctx, manyWriters, min(b.round, time.Second), fresh, write); err != nil {
		return result{}, fmt.Errorf("warm up: %w", err)
	}

	p := db.startPurge(ctx)
	defer p.end()
	var goal int64
	during := side{"purging", func(context.Context) (float64, error) {
		goal += int64(b.pending / b.rounds)
		if err := p.resume(goal); err != nil {
			return 0, err
		}
		var w stopwatch
		if _, err := rateWhile(p.run, manyWriters, func() bool { return p.deleted.Load() < goal }, fresh, w.timing(write)); err != nil {
			return 0, err
		}
		return w.p99()
	}}
	resting := side{"resting", func(context.Context) (float64, error) {
		return p99Of(p.run, manyWriters, b.round, write)
	}}
	r, err := b.compare(ctx, ratio("%.2f ms"), during, resting)
	r.details = append(r.details,
		fmt.Sprintf("p99 of a transaction that writes an event, %d writers at full speed, %d events purged", manyWriters, p.deleted.Load()))
	return r, err
}

// pausedPurge is a purge of all published events that goes on only when it is
// told how far.
type pausedPurge struct {
	run     context.Context //nolint:containedctx // ends when the purge has failed
	group   *errgroup.Group
	stop    context.CancelFunc
	goals   chan int64
	deleted atomic.Int64
}

func (db *database) startPurge(ctx context.Context) *pausedPurge {
	ctx, stop := context.WithCancel(ctx)
	p := &pausedPurge{stop: stop, goals: make(chan int64)}
	p.group, p.run = errgroup.WithContext(ctx)
	p.group.Go(func() error {
		goal := p.next()
		_, err := outbox.NewStore(db.schema).Purge(p.run, db.pool, time.Hour, outbox.PurgeConfig{Progress: func(deleted int64, _ float64) {
			if p.deleted.Store(deleted); deleted >= goal {
				goal = p.next()
			}
		}})
		if err == nil {
			err = fmt.Errorf("the purge has ended: %d events were all", p.deleted.Load())
		}
		return err
	})
	return p
}

// next waits for how many are to be purged next, in all.
func (p *pausedPurge) next() int64 {
	select {
	case goal := <-p.goals:
		return goal
	case <-p.run.Done():
		return 0
	}
}

// resume lets the purge go on until it has deleted so many in all. It returns
// when it does: it rests before, as after each batch.
func (p *pausedPurge) resume(goal int64) error {
	before := p.deleted.Load()
	select {
	case p.goals <- goal:
	case <-p.run.Done():
		return context.Cause(p.run)
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for p.deleted.Load() == before {
		select {
		case <-p.run.Done():
			return context.Cause(p.run)
		case <-tick.C:
		}
	}
	return nil
}

// end stops the purge where it is.
func (p *pausedPurge) end() {
	p.stop()
	_ = p.group.Wait() // who measured has seen what went wrong
}

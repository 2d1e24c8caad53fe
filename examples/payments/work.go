package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/semel-go/semel/schema"
)

const (
	firstKill = 300 * time.Millisecond
	killEvery = time.Second

	// settleTimeout is how long after the last answer everybody must have learned of
	// everything.
	settleTimeout = time.Minute

	// stopPatience is for processes that are told to stop. All is done by then, or
	// nobody wants it any more.
	stopPatience = 3 * time.Second
)

// work sends the callbacks while the processes handle them and are killed, and returns
// when everybody has learned of everything.
func (r *run) work(ctx context.Context) (err error) {
	crew, err := r.start(r.provider)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, crew.Stop(stopPatience)) }()

	var complete atomic.Bool // all callbacks are answered
	g, ctx := errgroup.WithContext(ctx)
	working, workIsOver := context.WithCancel(ctx)
	defer workIsOver()
	g.Go(func() error {
		defer complete.Store(true)
		return errors.Join(r.provider.forge(ctx), r.provider.sendAll(ctx, r.input))
	})
	g.Go(func() error { return r.killNowAndThen(working, crew) })
	g.Go(func() error {
		select {
		case err := <-crew.Failed():
			return err
		case <-working.Done():
			return nil
		}
	})
	g.Go(func() error {
		defer workIsOver()
		return r.watch(ctx, &complete)
	})
	return g.Wait()
}

// killNowAndThen kills one process after the other while there is work.
func (r *run) killNowAndThen(ctx context.Context, crew *processes) error {
	for pause := firstKill; r.kills < len(victims); pause = killEvery {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
		name := victims[r.kills]
		inFlight, err := crew.kill(ctx, name)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		r.kills++
		r.torn += inFlight
		r.say("%s killed with SIGKILL in the middle of %d transactions; another process takes its place", name, inFlight)
	}
	return nil
}

// watch prints how far the work is, and returns when all of it is done.
func (r *run) watch(ctx context.Context, complete *atomic.Bool) error {
	const look, line = 100 * time.Millisecond, time.Second
	progress := schema.Qualify(`
		SELECT (SELECT count(*) FROM semel.processed WHERE consumer = $1 AND outcome IN ('processed', 'superseded')),
		       (SELECT count(*) FROM semel.dead_letters),
		       (SELECT count(*) FROM shipments),
		       (SELECT count(*) FROM invoices),
		       (SELECT count(*) FROM semel.inbox_messages) + (SELECT count(*) FROM semel.outbox WHERE published_at IS NULL)`, r.name)
	var printed, since time.Time
	for {
		all := complete.Load() // before the counts, so that they include all
		if all && since.IsZero() {
			since = time.Now()
		}
		var handled, dead, shipped, invoiced, waiting int64
		if err := r.pool.QueryRow(ctx, progress, payments).Scan(&handled, &dead, &shipped, &invoiced, &waiting); err != nil {
			return fmt.Errorf("look how far the work is: %w", err)
		}
		done := all && waiting == 0
		if done {
			var err error
			if done, err = r.everybodyKnows(ctx); err != nil {
				return err
			}
		}
		if done || time.Since(printed) >= line {
			r.say("%6d callbacks answered %6d handled %4d dead %6d shipped %6d invoiced", r.provider.answered.Load(), handled, dead, shipped, invoiced)
			printed = time.Now()
		}
		switch {
		case done:
			return nil
		case all && time.Since(since) > settleTimeout:
			r.say("not all was done within %s", settleTimeout)
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(look):
		}
	}
}

// everybodyKnows reports that both consumers have acknowledged all that is on the topic.
func (r *run) everybodyKnows(ctx context.Context) (bool, error) {
	written, err := r.kafka.Written(ctx, r.name)
	if err != nil {
		return false, err
	}
	for _, consumer := range []string{shipping, invoicing} {
		acknowledged, err := r.kafka.Committed(ctx, groupOf(r.name, consumer), r.name)
		if err != nil || acknowledged < written {
			return false, err
		}
	}
	return true, nil
}

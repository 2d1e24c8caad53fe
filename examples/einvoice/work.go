package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/semel-go/semel/examples/internal/crew"
	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/schema"
)

const (
	// pace is between two orders.
	pace = 50 * time.Millisecond

	// settleTimeout is how long after the last order and the last disturbance
	// everything must be done.
	settleTimeout = time.Minute

	stopPatience = 5 * time.Second
)

// work has the orders confirmed while the providers do what they do and senders are
// killed, and returns when all that follows from the orders has happened.
func (r *run) work(ctx context.Context) (err error) {
	c, err := r.startCrew()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Stop(stopPatience)) }()

	var confirmed, disturbed atomic.Bool
	g, ctx := errgroup.WithContext(ctx)
	working, workIsOver := context.WithCancel(ctx)
	defer workIsOver()
	g.Go(func() error {
		defer confirmed.Store(true)
		return r.confirm(ctx)
	})
	g.Go(func() error {
		defer disturbed.Store(true)
		return r.disturb(ctx, c)
	})
	g.Go(func() error {
		select {
		case err := <-c.Failed():
			return err
		case <-working.Done():
			return nil
		}
	})
	g.Go(func() error {
		defer workIsOver()
		return r.watch(ctx, func() bool { return confirmed.Load() && disturbed.Load() })
	})
	return g.Wait()
}

// senders are the processes that call the providers.
func senders() []string { return []string{"sender-1", "sender-2"} }

// startCrew starts the services, each in its own process.
func (r *run) startCrew() (*crew.Crew, error) {
	c := crew.New(r.verbose)
	start := func(name, part string) error {
		return c.Start(crew.Member{Name: name, Part: part, Config: partConfig{
			Name: name, DatabaseURL: r.server.URL, Schema: r.name, Brokers: r.kafka.Brokers, Topic: r.name, Accounts: r.providers.accounts,
		}})
	}
	errs := []error{start("relay", relayPart), start("services", servicesPart)}
	for _, name := range senders() {
		errs = append(errs, start(name, senderPart))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, errors.Join(err, c.Stop(0))
	}
	return c, nil
}

// confirm is the ERP at work.
func (r *run) confirm(ctx context.Context) error {
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for _, o := range r.orders {
		if err := (erp{outbox.NewWriter(r.name)}).confirm(ctx, r.pool, o); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
	return nil
}

// watch prints how far the work is, and returns when all of it is done, or should be.
func (r *run) watch(ctx context.Context, done func() bool) error {
	const look, line = 100 * time.Millisecond, time.Second
	progress := schema.Qualify(`
		SELECT (SELECT count(*) FROM orders),
		       (SELECT count(*) FROM invoice_requests WHERE status = 'SENT'),
		       (SELECT count(*) FROM semel.inbox_messages WHERE ready_at IS NOT NULL),
		       (SELECT count(*) FROM semel.dead_letters)`, r.name)
	var news int64
	var printed, since time.Time
	for {
		settled := false
		if done() {
			if since.IsZero() {
				since = time.Now()
			}
			var err error
			if settled, err = r.settled(ctx); err != nil {
				return err
			}
		}
		var err error
		if news, err = r.tellGates(ctx, news); err != nil {
			return err
		}
		if settled || time.Since(printed) >= line {
			var orders, sent, waiting, dead int64
			if err := r.pool.QueryRow(ctx, progress).Scan(&orders, &sent, &waiting, &dead); err != nil {
				return fmt.Errorf("look how far the work is: %w", err)
			}
			r.say("%5d orders confirmed %5d documents sent %5d wait %3d dead", orders, sent, waiting, dead)
			printed = time.Now()
		}
		switch {
		case settled:
			return nil
		case !since.IsZero() && time.Since(since) > settleTimeout:
			r.say("not everything was done within %s", settleTimeout)
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(look):
		}
	}
}

// settled reports that nothing is left to be done. The order of the questions
// matters: who has acknowledged all that was ever written causes nothing new.
func (r *run) settled(ctx context.Context) (bool, error) {
	var least int64
	for i, consumer := range topicConsumers() {
		acknowledged, err := r.kafka.Committed(ctx, r.name+"."+consumer, r.name)
		if err != nil {
			return false, err
		}
		if i == 0 || acknowledged < least {
			least = acknowledged
		}
	}
	var left int64
	if err := r.pool.QueryRow(ctx, schema.Qualify(`
		SELECT (SELECT count(*) FROM semel.outbox WHERE published_at IS NULL)
		     + (SELECT count(*) FROM semel.inbox_messages WHERE ready_at IS NOT NULL)`, r.name)).Scan(&left); err != nil {
		return false, fmt.Errorf("look what is left to be done: %w", err)
	}
	written, err := r.kafka.Written(ctx, r.name)
	return err == nil && left == 0 && least == written, err
}

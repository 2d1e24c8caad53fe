package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/semel-go/semel/examples/internal/crew"
	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/schema"
)

const (
	// lead and trail are how long reviewers work before the broker goes away,
	// and after it is back.
	lead  = 4 * time.Second
	trail = 4 * time.Second

	// settleTimeout is how long after the last approval, and with the broker
	// back, everybody must have learned of all.
	settleTimeout = time.Minute

	stopPatience = 5 * time.Second
)

var relays = [...]string{"relay-1", "relay-2"}

// work has the merchants approved while relays are killed and the broker is
// away, and returns when everybody has learned of all approvals.
func (r *run) work(ctx context.Context, ids []string) (err error) {
	g, ctx := errgroup.WithContext(ctx)
	working, workIsOver := context.WithCancel(ctx)
	defer workIsOver()

	notifier := outbox.NewNotifier(r.pool, r.name)
	endpoint, err := serve(working, g, newEndpoint(approvals{pool: r.pool, events: outbox.NewWriter(r.name), wake: notifier.Wake}))
	if err != nil {
		return err
	}
	calls, err := serve(working, g, &api{pool: r.pool})
	if err != nil {
		return err
	}
	r.reviewers = &reviewers{endpoint: endpoint, client: &http.Client{Timeout: 30 * time.Second}}
	c, err := r.startCrew(calls)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Stop(stopPatience)) }()
	if err := r.ready(ctx, c); err != nil {
		return err
	}

	var reviewed, disturbed atomic.Bool
	g.Go(func() error { return notifier.Run(working) })
	g.Go(func() error { r.topic.read(working); return nil })
	g.Go(func() error {
		defer reviewed.Store(true)
		return r.reviewers.work(ctx, ids, r.rate)
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
		return r.watch(ctx, func() bool { return reviewed.Load() && disturbed.Load() })
	})
	return g.Wait()
}

// serve serves HTTP on loopback until ctx ends, and returns where.
func serve(ctx context.Context, g *errgroup.Group, h http.Handler) (url string, err error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("serve HTTP: %w", err)
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second}
	g.Go(func() error {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve HTTP: %w", err)
		}
		return nil
	})
	g.Go(func() error {
		<-ctx.Done()
		return server.Close()
	})
	return "http://" + listener.Addr().String(), nil
}

// startCrew starts the relays and the consumers, each in its own process.
func (r *run) startCrew(calls string) (*crew.Crew, error) {
	c := crew.New(r.verbose)
	start := func(name, part string) error {
		return c.Start(crew.Member{Name: name, Part: part, Config: partConfig{
			Name: name, DatabaseURL: r.server.URL, Schema: r.name,
			Brokers: r.kafka.Brokers, Gate: r.gate.Address(), Topic: r.name, API: calls,
		}})
	}
	errs := []error{start(provisioning, provisioningPart), start(searchIndex, searchIndexPart)}
	for _, name := range relays {
		errs = append(errs, start(name, relayPart))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, errors.Join(err, c.Stop(0))
	}
	return c, nil
}

// ready waits until the relays share the work, and opens connections: what is
// measured is a service that runs.
func (r *run) ready(ctx context.Context, c *crew.Crew) error {
	conns := make([]*pgxpool.Conn, connections/2)
	for i := range conns {
		conn, err := r.pool.Acquire(ctx)
		if err != nil {
			return fmt.Errorf("connect to the database: %w", err)
		}
		defer conn.Release()
		conns[i] = conn
	}
	for {
		var owners int
		if err := conns[0].QueryRow(ctx, schema.Qualify(`SELECT count(DISTINCT owner) FROM semel.relay_leases`, r.name)).Scan(&owners); err != nil {
			return fmt.Errorf("look who publishes: %w", err)
		}
		if owners == len(relays) {
			return nil
		}
		select {
		case err := <-c.Failed():
			return err
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// watch prints how far the work is, and returns when all of it is done and
// everybody has learned of it, or should have.
func (r *run) watch(ctx context.Context, done func() bool) error {
	const look, line = 100 * time.Millisecond, time.Second
	progress := schema.Qualify(`
		SELECT (SELECT count(*) FROM merchants WHERE status = 'approved'),
		       (SELECT count(*) FROM semel.outbox WHERE published_at IS NULL),
		       (SELECT count(*) FROM configurations),
		       (SELECT count(*) FROM search_index)`, r.name)
	var printed, since time.Time
	for {
		was := done() // before the counts, so that they include all
		var approved, pending, configs, indexed int64
		if err := r.pool.QueryRow(ctx, progress).Scan(&approved, &pending, &configs, &indexed); err != nil {
			return fmt.Errorf("look how far the work is: %w", err)
		}
		r.waited = max(r.waited, pending)
		settled := false
		if was {
			if since.IsZero() {
				since = time.Now()
			}
			var err error
			if settled, err = r.settled(ctx); err != nil {
				return err
			}
			settled = settled && pending == 0
		}
		if settled || time.Since(printed) >= line {
			r.say("%6d approved (p99 %3d ms) %6d events wait %6d published %6d configured %6d indexed",
				approved, r.reviewers.all().p99().Milliseconds(), pending, approved-pending, configs, indexed)
			printed = time.Now()
		}
		switch {
		case settled:
			return nil
		case !since.IsZero() && time.Since(since) > settleTimeout:
			r.say("not everybody learned of all approvals within %s", settleTimeout)
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(look):
		}
	}
}

// settled reports that everybody has read all that is on the topic.
func (r *run) settled(ctx context.Context) (bool, error) {
	written, err := r.kafka.Written(ctx, r.name)
	if err != nil {
		return false, err
	}
	for _, consumer := range []string{provisioning, searchIndex} {
		acknowledged, err := r.kafka.Committed(ctx, r.name+"."+consumer, r.name)
		if err != nil || acknowledged < written {
			return false, err
		}
	}
	return r.topic.len() >= written, nil
}

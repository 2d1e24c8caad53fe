package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/semel-go/semel/examples/internal/crew"
	"github.com/semel-go/semel/examples/internal/example"
	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/schema"
)

// lead and trail are how long reviewers work before the broker goes away, and after
// it is back.
const (
	lead  = 4 * time.Second
	trail = 4 * time.Second
)

var relays = [...]string{"relay-1", "relay-2"}

// work has merchants approved while relays are killed and the broker is away, and
// returns when everybody has learned of all approvals.
func (r *run) work(ctx context.Context) error {
	ids, err := submit(ctx, r.Pool, r.rate*int((lead+r.down+trail)/time.Second))
	if err != nil {
		return err
	}
	notifier := outbox.NewNotifier(r.Pool, r.Schema)
	endpoint, err := example.Listen(ctx, newEndpoint(approvals{pool: r.Pool, events: outbox.NewWriter(r.Schema), wake: notifier.Wake}))
	if err != nil {
		return err
	}
	calls, err := example.Listen(ctx, &api{pool: r.Pool})
	if err != nil {
		return err
	}
	r.reviewers = &reviewers{endpoint: endpoint.URL, client: &http.Client{Timeout: 30 * time.Second}}
	member := func(name, part string) crew.Member {
		return crew.Member{Name: name, Part: part, Config: partConfig{r.Services(name), r.gate.Address(), calls.URL}}
	}
	c, err := r.Crew(
		member(provisioning, provisioningPart), member(searchIndex, searchIndexPart),
		member(relays[0], relayPart), member(relays[1], relayPart),
	)
	if err != nil {
		return err
	}
	return r.Work(ctx, example.Work{
		Crew:     c,
		Tasks:    []func(context.Context) error{func(ctx context.Context) error { return r.review(ctx, c, ids) }},
		Beside:   []func(context.Context) error{endpoint.Run, calls.Run, notifier.Run, r.reader.read},
		Progress: r.progress,
		Settled:  r.settled,
	})
}

// review has the reviewers at work while things go wrong.
func (r *run) review(ctx context.Context, c *crew.Crew, ids []string) error {
	if err := r.ready(ctx); err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return r.reviewers.work(ctx, ids, r.rate) })
	g.Go(func() error { return r.disturb(ctx, c) })
	return g.Wait()
}

// ready waits until the relays share the work, and opens connections: what is
// measured is a service that runs.
func (r *run) ready(ctx context.Context) error {
	conns := make([]*pgxpool.Conn, connections/2)
	for i := range conns {
		conn, err := r.Pool.Acquire(ctx)
		if err != nil {
			return fmt.Errorf("connect to the database: %w", err)
		}
		defer conn.Release()
		conns[i] = conn
	}
	for owners := 0; owners < len(relays); {
		if err := conns[0].QueryRow(ctx, schema.Qualify(`SELECT count(DISTINCT owner) FROM semel.relay_leases`, r.Schema)).Scan(&owners); err != nil {
			return fmt.Errorf("look who publishes: %w", err)
		}
		if err := example.Wait(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// progress says how far the work is.
func (r *run) progress(ctx context.Context) (string, error) {
	var approved, pending, configs, indexed int64
	if err := r.Pool.QueryRow(ctx, schema.Qualify(`
		SELECT (SELECT count(*) FROM merchants WHERE status = 'approved'),
		       (SELECT count(*) FROM semel.outbox WHERE published_at IS NULL),
		       (SELECT count(*) FROM configurations),
		       (SELECT count(*) FROM search_index)`, r.Schema)).Scan(&approved, &pending, &configs, &indexed); err != nil {
		return "", fmt.Errorf("look how far the work is: %w", err)
	}
	r.waited = max(r.waited, pending)
	return fmt.Sprintf("%6d approved (p99 %3d ms) %6d events wait %6d published %6d configured %6d indexed",
		approved, r.reviewers.all().p99().Milliseconds(), pending, approved-pending, configs, indexed), nil
}

// settled reports that everybody has read all that is on the topic.
func (r *run) settled(ctx context.Context) (bool, error) {
	if settled, err := r.Settled(ctx); err != nil || !settled {
		return false, err
	}
	written, err := r.Kafka.Written(ctx, r.Topic)
	return err == nil && r.reader.len() >= written, err
}

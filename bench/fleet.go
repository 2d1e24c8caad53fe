package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/outbox"
)

const (
	// instances is how many relays share an outbox, and how many workers do by hand.
	instances = 4

	// fleetConns is how many connections of a pool they need at once.
	fleetConns = 4 * instances

	// fleetPatience is how long they may take to share the shards.
	fleetPatience = time.Minute
)

// fleet is relays that share an outbox. They publish once it is opened, and
// until it is ended.
type fleet struct {
	relays []*outbox.Relay
	run    context.Context //nolint:containedctx // ends when one of them has failed
	group  *errgroup.Group
	stop   context.CancelFunc
	gate   chan struct{}
	opened sync.Once
}

// startFleet starts a relay for each publisher, and returns when each has its
// share of the shards: a clock that starts later does not measure that.
func (db *database) startFleet(ctx context.Context, pool *pgxpool.Pool, batch int, publishers []handler.Publisher) (*fleet, error) {
	ctx, stop := context.WithCancel(ctx)
	group, run := errgroup.WithContext(ctx)
	f := &fleet{run: run, group: group, stop: stop, gate: make(chan struct{})}
	for i, p := range publishers {
		r, err := outbox.NewRelay(pool, newGated(p, f.gate), outbox.RelayConfig{
			Schema: db.schema, Name: fmt.Sprintf("bench %d", i+1), Batch: batch,
			Window:         confirmWindow / len(publishers),
			AttemptTimeout: 5 * time.Minute, // the gate may be closed for long
			Lease:          10 * time.Minute,
			Logger:         silent(),
		})
		if err != nil {
			return nil, errors.Join(err, f.end())
		}
		f.relays = append(f.relays, r)
		group.Go(func() error { return r.Run(run) })
	}
	if err := f.shared(db); err != nil {
		return nil, errors.Join(err, f.end())
	}
	return f, nil
}

// shared waits until the relays own all shards, each as many as the others.
func (f *fleet) shared(db *database) error {
	const owners = `
		SELECT count(*) FILTER (WHERE owner IS NOT NULL) = $1 AND sum(leases) FILTER (WHERE owner IS NULL) IS NULL AND max(leases) - min(leases) <= 1
		FROM (SELECT owner, count(*) AS leases FROM relay_leases GROUP BY owner) AS o`
	ctx, cancel := context.WithTimeoutCause(f.run, fleetPatience, errors.New("the relays do not come to share the shards"))
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		var shared bool
		err := db.pool.QueryRow(ctx, owners, len(f.relays)).Scan(&shared)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return fmt.Errorf("see who owns the shards: %w", err)
		case shared:
			return nil
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

// open lets the relays publish.
func (f *fleet) open() { f.opened.Do(func() { close(f.gate) }) }

// sent is how many events are published, and noted.
func (f *fleet) sent() int64 {
	var sent int64
	for _, r := range f.relays {
		sent += r.Stats().Kinds[aggregateType].Sent
	}
	return sent
}

// end stops the relays and returns what went wrong in one of them: a rate of
// relays that lost shards, or found no broker, is none.
func (f *fleet) end() error {
	f.open()
	f.stop()
	err := f.group.Wait()
	for _, r := range f.relays {
		s := r.Stats()
		if k := s.Kinds[aggregateType]; s.Outages+s.Stale+s.LeasesLost+k.Failed+k.Quarantined > 0 {
			err = errors.Join(err, fmt.Errorf("a relay did not run smoothly: %+v", s))
		}
	}
	return err
}

// null publishes to nobody.
type null struct{}

// Publish implements [handler.Publisher].
func (null) Publish(_ context.Context, msgs []*handler.Message) []error {
	return make([]error, len(msgs))
}

// KeepsOrder implements [handler.OrderedPublisher].
func (null) KeepsOrder() bool { return true }

// nulls are the publishers of a fleet that measures the database's side.
func nulls() []handler.Publisher {
	publishers := make([]handler.Publisher, instances)
	for i := range publishers {
		publishers[i] = null{}
	}
	return publishers
}

// gated publishes nothing before its gate is opened.
type gated struct {
	handler.Publisher
	gate    <-chan struct{}
	ordered bool
}

func newGated(p handler.Publisher, gate <-chan struct{}) *gated {
	o, ok := p.(handler.OrderedPublisher)
	return &gated{Publisher: p, gate: gate, ordered: ok && o.KeepsOrder()}
}

// Publish implements [handler.Publisher].
func (g *gated) Publish(ctx context.Context, msgs []*handler.Message) []error {
	select {
	case <-g.gate:
	case <-ctx.Done(): // the publisher says so
	}
	return g.Publisher.Publish(ctx, msgs)
}

// KeepsOrder implements [handler.OrderedPublisher].
func (g *gated) KeepsOrder() bool { return g.ordered }

package inbox

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/dedup"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/internal/jitter"
)

// probe asks whether the database does its part: a claim of a fresh random id,
// rolled back.
func (in *Inbox) probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, in.cfg.StatementTimeout)
	defer cancel()
	var id dedup.ID
	_, _ = rand.Read(id[:]) // never fails
	b := &pgx.Batch{}
	b.BeginTx(pgx.TxOptions{})
	in.store.QueueClaim(b, []dedup.Entry{{ConsumerID: in.consumerID, MessageID: id, Outcome: handler.Processed}}, false, in.limits)
	b.Queue("rollback")

	conn, err := in.pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("probe the database: %w", err)
	}
	defer conn.Release()
	if err := conn.Conn().SendBatch(ctx, b).Close(); err != nil {
		return fmt.Errorf("probe the database: %w", err)
	}
	return nil
}

// gate stops the tasks of one run while the database is away.
type gate struct {
	trips chan struct{} // one place: a trip is waiting to be looked at

	mu    sync.Mutex    // guards what follows
	open  chan struct{} // closed when the gate opens; nil while it is open
	cause error
}

func newGate() gate { return gate{trips: make(chan struct{}, 1)} }

// trip closes the gate and returns a channel that is closed when it opens.
func (g *gate) trip(cause error) <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.cause = cause
	if g.open == nil {
		g.open = make(chan struct{})
		g.trips <- struct{}{} // never blocks: the tender took the last one before it opened
	}
	return g.open
}

func (g *gate) reopen() {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.open)
	g.open = nil
}

func (g *gate) reason() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.cause
}

// refusalEvery is how often it is logged that the database answers, and refuses
// something all the same: once for a lost connection, again for what stays.
const refusalEvery = 10 * time.Second

// tend looks at the database whenever the gate was tripped, and opens it when
// the database answers. If it does not at the first look, the source is paused
// meanwhile. It returns when ctx ends.
func (r *run) tend(ctx context.Context) {
	var logged time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.gate.trips:
		}
		r.in.lanes.hold(r)
		if r.tooOld.long.Load() {
			r.waitForPerson(ctx)
		} else if err := r.in.probe(ctx); err != nil {
			r.waitOut(ctx, err)
		} else if time.Since(logged) > refusalEvery {
			logged = time.Now()
			r.in.cfg.Logger.WarnContext(ctx, "a statement of the engine went wrong in a database that answers: it is tried again, no attempt is spent",
				slog.String("consumer", r.in.consumer), slog.Any("error", r.gate.reason()))
		}
		r.in.lanes.release(r)
		r.gate.reopen()
	}
}

// waitOut pauses the source until the database answers or ctx ends.
func (r *run) waitOut(ctx context.Context, err error) {
	in, began := r.in, time.Now()
	in.counters.outages.Add(1)
	in.counters.paused.Add(1)
	defer in.counters.paused.Add(-1)
	in.cfg.Logger.ErrorContext(ctx, "database is away: intake is paused, no attempt is spent; it goes on by itself",
		slog.String("consumer", in.consumer), slog.Any("error", err), slog.Any("seen_as", r.gate.reason()))
	in.observe(ctx, Event{Kind: Paused, Err: err})
	r.pausing.set(databaseAway, true)
	defer r.pausing.set(databaseAway, false) // also when ctx has ended: the source may be run again
	backoff := jitter.New(in.cfg.QuickDelay, in.cfg.OutageMaxDelay)
	timer := time.NewTimer(0)
	defer timer.Stop()
	stopping := r.stopping
	timer.Reset(backoff.NextBackOff())
	for err != nil {
		select {
		case <-ctx.Done():
			return
		case <-stopping:
			stopping = nil
			r.giveUp() // a drain does not wait for a database
		case <-timer.C:
			if err = in.probe(ctx); err != nil {
				timer.Reset(backoff.NextBackOff())
			}
		}
	}
	in.cfg.Logger.InfoContext(ctx, "database is back: intake goes on",
		slog.String("consumer", in.consumer), slog.Duration("after", time.Since(began)))
	in.observe(ctx, Event{Kind: Resumed, Took: time.Since(began)})
}

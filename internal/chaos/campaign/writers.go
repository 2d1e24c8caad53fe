package campaign

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/schema"
)

const (
	writerCount  = 8
	rowed        = "account" // aggregates that have a row to hold
	rowless      = "entry"   // aggregates of which there are only inserts
	ofEach       = 60        // aggregates
	maxEvents    = 4         // of a transaction
	rolledBackIn = 15        // one transaction in so many is rolled back,
	lateIn       = 40        // commits late
	maxBacklog   = 3000      // events on their way; at more the writers wait
)

// writers write events in transactions of many kinds, and tell the ledger.
type writers struct {
	pool   *pgxpool.Pool
	schema string
	outbox outbox.Writer
	ledger *ledger

	mu       sync.Mutex // guards versions
	versions map[string]int64
}

func newWriters(ctx context.Context, pool *pgxpool.Pool, name string, l *ledger) (*writers, error) {
	w := &writers{pool: pool, schema: name, outbox: outbox.NewWriter(name), ledger: l, versions: map[string]int64{}}
	if _, err := pool.Exec(ctx, schema.Qualify(accountsSQL, name)); err != nil {
		return nil, fmt.Errorf("create the accounts of schema %q: %w", name, err)
	}
	_, err := pool.Exec(ctx, schema.Qualify(`INSERT INTO semel.accounts (id) SELECT $1 || '-' || n FROM generate_series(0, $2::int - 1) AS n`, name), rowed, ofEach)
	return w, err
}

// write writes until enough.
func (w *writers) write(ctx context.Context, enough func() bool) error {
	for !enough() {
		if w.ledger.backlog() > maxBacklog {
			time.Sleep(5 * time.Millisecond)
			continue
		}
		kind := rowed
		if rand.IntN(2) == 0 {
			kind = rowless
		}
		id := fmt.Sprintf("%s-%d", kind, rand.IntN(ofEach))
		late := rand.IntN(lateIn) == 0
		if err := w.one(ctx, kind, id, late); err != nil {
			return err
		}
		if late { // the next one of the aggregate is right behind it
			if err := w.one(ctx, kind, id, false); err != nil {
				return err
			}
		}
	}
	return nil
}

// one is one transaction.
func (w *writers) one(ctx context.Context, kind, id string, late bool) error {
	tx, err := w.pool.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	n := 1 + rand.IntN(maxEvents)
	last, err := w.take(ctx, tx, kind, id, n)
	if err != nil {
		return fmt.Errorf("hold %s %s: %w", kind, id, err)
	}
	events := make([]outbox.Event, n)
	for i := range events {
		events[i] = outbox.Event{
			ID: outbox.NewID(), AggregateType: kind, AggregateID: id, Type: "Changed",
			Version: last - int64(n-1-i), Payload: make([]byte, rand.IntN(300)),
		}
	}
	if err := w.outbox.Write(ctx, tx, events...); err != nil {
		return err
	}
	if late {
		time.Sleep(50*time.Millisecond + rand.N(700*time.Millisecond))
	}
	if rand.IntN(rolledBackIn) == 0 {
		return tx.Rollback(ctx)
	}
	w.ledger.commits(events) // before it is seen
	return tx.Commit(ctx)
}

// take holds the aggregate, and returns the version of the last of n changes.
func (w *writers) take(ctx context.Context, tx pgx.Tx, kind, id string, n int) (version int64, err error) {
	if kind == rowed {
		err = tx.QueryRow(ctx, schema.Qualify(`UPDATE semel.accounts SET version = version + $2 WHERE id = $1 RETURNING version`, w.schema), id, n).Scan(&version)
		return version, err
	}
	if err := hold(ctx, tx, kind, id); err != nil {
		return 0, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.versions[id] += int64(n)
	return w.versions[id], nil
}

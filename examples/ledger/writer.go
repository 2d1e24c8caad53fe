package main

import (
	"context"
	"os"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/semel-go/semel/examples/internal/example"
	"github.com/semel-go/semel/outbox"
)

// connections are how many transactions book postings at once.
const connections = 4

// writerConfig is what the process that books is told.
type writerConfig struct {
	example.Services

	Rate, Batch, Relays int
	For                 time.Duration
}

// write books what comes, and tells how far it is.
func write(ctx context.Context, c writerConfig) error {
	pool, err := c.Pool(ctx, connections+2)
	if err != nil {
		return err
	}
	defer pool.Close()
	if err := c.awaitRelays(ctx, pool); err != nil {
		return err
	}
	notifier := outbox.NewNotifier(pool, c.Schema)
	w := &writer{
		ledger: &ledger{pool: pool, events: outbox.NewWriter(c.Schema), wake: notifier.Wake},
		pace:   newPace(c.Rate, c.For, c.Batch),
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return w.work(ctx) })
	g.Go(func() error { return notifier.Run(ctx) })
	g.Go(func() error { return tell(ctx, os.Stdout, w.news) })
	return g.Wait()
}

// awaitRelays waits until the relays share the work: what is measured is a system
// that runs.
func (c writerConfig) awaitRelays(ctx context.Context, pool *pgxpool.Pool) error {
	for {
		status, err := outbox.NewStore(c.Schema).Status(ctx, pool)
		if err != nil {
			return err
		}
		sharing := 0
		for _, r := range status.Relays {
			if r.Shards > 0 {
				sharing++
			}
		}
		if sharing == c.Relays && status.UnownedShards == 0 {
			return nil
		}
		if err := example.Wait(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
}

// writer books what comes.
type writer struct {
	ledger *ledger
	pace   *pace

	orders                 atomic.Int64 // numbers that are given
	postings, transactions atomic.Int64
	busy, took             atomic.Int64 // nanoseconds; took: 0 until all is done
}

// work books until nothing comes any more.
func (w *writer) work(ctx context.Context) error {
	batches := make(chan int)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		w.pace.deal(ctx, batches)
		return nil
	})
	for range connections {
		g.Go(func() error { return w.book(ctx, batches) })
	}
	err := g.Wait()
	w.took.Store(int64(time.Since(w.pace.began)))
	return err
}

// book books one batch after the other on one connection.
func (w *writer) book(ctx context.Context, batches <-chan int) error {
	till := till{orders: &w.orders}
	for n := range batches {
		began := time.Now()
		postings := till.next(n)
		if err := w.ledger.book(ctx, postings); err != nil {
			return err
		}
		till.committed(postings)
		w.busy.Add(int64(time.Since(began)))
		w.transactions.Add(1)
		w.postings.Add(int64(n))
	}
	return nil
}

func (w *writer) news() news {
	took := time.Duration(w.took.Load()) // first: if all is done, the counts are of all
	n := news{Began: w.pace.began, Done: took > 0, Took: took}
	if !n.Done {
		n.Took = time.Since(w.pace.began)
	}
	n.Postings, n.Transactions, n.Waiting = w.postings.Load(), w.transactions.Load(), w.pace.waiting()
	n.Busy = time.Duration(w.busy.Load()) / connections
	return n
}

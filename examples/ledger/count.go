package main

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel/schema"
)

//go:embed count.sql
var countSQL string

// counts is what tables and topic tell of a run.
type counts struct {
	postings, written, published, attempts int64
	records, events                        int64 // on the topic; of copies one
	lost, doubled, reordered, off          int64

	took time.Duration // from the first event that was published to the last
	lag  []time.Duration
}

// countEvents reads the truth from the tables: no counter of a process, which may be
// dead, is trusted. Committed is how many postings the writer was told are.
func countEvents(ctx context.Context, pool *pgxpool.Pool, schemaName string, committed int64) (c counts, err error) {
	var seconds float64
	var lag []float64
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		// It is one large query: memory for it is well spent, compiling it is not.
		if _, err := tx.Exec(ctx, `SET LOCAL work_mem = '128MB'; SET LOCAL jit = off`); err != nil {
			return err
		}
		return tx.QueryRow(ctx, schema.Qualify(countSQL, schemaName), committed).
			Scan(&c.postings, &c.written, &c.published, &c.attempts, &seconds, &lag, &c.records, &c.events, &c.lost, &c.doubled, &c.reordered, &c.off)
	})
	if err != nil {
		return c, fmt.Errorf("count what became of the postings: %w", err)
	}
	c.took = inSeconds(seconds)
	for _, l := range lag {
		c.lag = append(c.lag, inSeconds(l))
	}
	return c, nil
}

func inSeconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// result is the sum of a run.
type result struct {
	counts
	offered int           // events a second
	length  time.Duration // for which they were
	failed  int64         // attempts, as the relays told
	kills   int           // of relays
}

// achieved is how many events a second were published, over the time in which they
// were, or were offered if that is longer.
func (r result) achieved() int {
	return int(float64(r.published)/max(r.took, r.length).Seconds() + 0.5)
}

// OK reports that each fact is told once.
func (r result) OK() bool { return r.lost == 0 && r.doubled == 0 }

// check returns an error unless they are told in order, and the books balance: no
// number of RESULT says so.
func (r result) check() error {
	if r.reordered > 0 || r.off > 0 {
		return fmt.Errorf("%d events are out of the order of their account or order, %d postings and accounts do not balance", r.reordered, r.off)
	}
	return nil
}

// sendFail is how many attempts failed, or found no broker: what the relays told, or
// what is noted with the events, if that is more: a relay that was killed cannot tell.
func (r result) sendFail() int64 { return max(r.failed, r.attempts) }

func (r result) String() string {
	return fmt.Sprintf("RESULT offered=%d achieved=%d send_success=%d send_fail=%d lag_p99_ms=%d lost=%d doubled=%d",
		r.offered, r.achieved(), r.published, r.sendFail(), r.lag[1].Milliseconds(), r.lost, r.doubled)
}

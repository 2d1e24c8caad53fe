package main

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel/schema"
)

//go:embed tables.sql
var tablesSQL string

//go:embed count.sql
var countSQL string

// counts is what tables and topic tell of the approvals.
type counts struct {
	approvals, published, configs, indexed, lost, doubled int64

	records, calls, attempts, dead int64 // for people
}

// countApprovals reads the truth from the tables: no counter of a process,
// which may be dead, is trusted. Told are the merchants whose reviewers were
// told that they are approved.
func countApprovals(ctx context.Context, pool *pgxpool.Pool, schemaName string, told []string) (c counts, err error) {
	err = pool.QueryRow(ctx, schema.Qualify(countSQL, schemaName), told).
		Scan(&c.approvals, &c.published, &c.configs, &c.indexed, &c.lost, &c.doubled, &c.records, &c.calls, &c.attempts, &c.dead)
	if err != nil {
		return c, fmt.Errorf("count what became of the approvals: %w", err)
	}
	return c, nil
}

// result is the sum of a run. How long things took comes from a clock.
type result struct {
	counts
	p99, down time.Duration
}

// OK reports that everybody learned of each approval, once.
func (r result) OK() bool { return r.lost == 0 && r.doubled == 0 }

func (r result) String() string {
	return fmt.Sprintf("RESULT approvals=%d p99_ms=%d broker_down_s=%.0f published=%d configs=%d indexed=%d lost=%d doubled=%d",
		r.approvals, r.p99.Milliseconds(), r.down.Seconds(), r.published, r.configs, r.indexed, r.lost, r.doubled)
}

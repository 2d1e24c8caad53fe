package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel/examples/internal/crew"
)

// members are the names of the consumer processes that share the work.
var members = [...]string{"consumer-1", "consumer-2"}

// consumers is the consumer processes.
type consumers struct {
	*crew.Crew
	schema string
	pool   *pgxpool.Pool // to look who is at work
}

func startConsumers(config consumerConfig, verbose bool, pool *pgxpool.Pool) (*consumers, error) {
	c := &consumers{Crew: crew.New(verbose), schema: config.Schema, pool: pool}
	for _, name := range members {
		config.Member = name
		if err := c.Start(crew.Member{Name: name, Part: consumerArg, Config: config}); err != nil {
			return nil, errors.Join(err, c.Stop(0))
		}
	}
	return c, nil
}

// kill kills a process with SIGKILL at a moment when messages are in flight in
// it: handlers have written and not committed. It returns how many. Another
// process takes its place.
func (c *consumers) kill(ctx context.Context, name string) (inFlight int, err error) {
	for inFlight == 0 {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		// Freeze it first: what is in flight then is so when it dies.
		if err := c.Freeze(name); err != nil {
			return 0, err
		}
		if inFlight, err = c.openTransactions(ctx, name); err != nil {
			return 0, errors.Join(err, c.Thaw(name))
		}
		if inFlight > 0 {
			break
		}
		if err := c.Thaw(name); err != nil {
			return 0, err
		}
		time.Sleep(5 * time.Millisecond)
	}
	return inFlight, c.Replace(name, func() {})
}

// openTransactions counts the claims of a process that are not committed.
func (c *consumers) openTransactions(ctx context.Context, name string) (n int, err error) {
	err = c.pool.QueryRow(ctx, `
		SELECT count(*)
		FROM pg_stat_activity
		WHERE application_name = $1
		  AND backend_xid IS NOT NULL`, c.schema+" "+name).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("look for messages in flight in %s: %w", name, err)
	}
	return n, nil
}

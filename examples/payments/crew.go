package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel/examples/internal/crew"
)

// The parts that a process of this program can play, by its only argument.
const (
	servicePart  = "__service"
	consumerPart = "__consumer"
)

// partOf returns what a process with these arguments does, or nil for the
// example itself.
func partOf(args []string) func(partConfig, context.Context) error {
	switch {
	case len(args) == 1 && args[0] == servicePart:
		return partConfig.serve
	case len(args) == 1 && args[0] == consumerPart:
		return partConfig.consume
	}
	return nil
}

// partConfig is what each process is told.
type partConfig struct {
	Name        string
	DatabaseURL string
	Schema      string
	Brokers     []string
	Topic       string
	Secret      string // of the endpoint for callbacks
	AnyType     bool   // types without a route are recorded, not dead
}

// victims are killed in this order.
var victims = [...]string{"service-1", shipping, "service-2"}

// processes is the service and its consumers, each a process of its own.
type processes struct {
	*crew.Crew
	schema string
	pool   *pgxpool.Pool // to look who is at work
}

// start starts all of them. The provider learns where the service is from what its
// processes print.
func (r *run) start(p *provider) (*processes, error) {
	c := &processes{Crew: crew.New(r.verbose), schema: r.name, pool: r.pool}
	for name, part := range map[string]string{"service-1": servicePart, "service-2": servicePart, shipping: consumerPart, invoicing: consumerPart} {
		err := c.Start(crew.Member{
			Name: name, Part: part, Prints: func(line string) { p.found(name, line) },
			Config: partConfig{
				Name: name, DatabaseURL: r.server.URL, Schema: r.name, Brokers: r.kafka.Brokers, Topic: r.name,
				Secret: p.secret, AnyType: r.options.input != "",
			},
		})
		if err != nil {
			return nil, errors.Join(err, c.Stop(0))
		}
	}
	return c, nil
}

// kill kills a process with SIGKILL at a moment when it is in the middle of
// transactions: it has written and not committed. It returns how many. Another
// process takes its place.
func (c *processes) kill(ctx context.Context, name string) (inFlight int, err error) {
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

// openTransactions counts what a process has written and not committed.
func (c *processes) openTransactions(ctx context.Context, name string) (n int, err error) {
	err = c.pool.QueryRow(ctx, `
		SELECT count(*)
		FROM pg_stat_activity
		WHERE application_name = $1
		  AND backend_xid IS NOT NULL`, c.schema+" "+name).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("look for transactions of %s: %w", name, err)
	}
	return n, nil
}

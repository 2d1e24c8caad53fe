// Command child is the consumer that chaos kills. It is an ordinary program
// around inbox.Run; what makes it a victim is an Observer and a wrapped source.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel/inbox"
	"github.com/semel-go/semel/internal/chaos/wire"
	"github.com/semel-go/semel/internal/services"
)

// connections of a child: few, because there are many children.
const connections = 6

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, stdin io.Reader, stdout io.Writer) error {
	orders := json.NewDecoder(stdin)
	var setup wire.Setup
	if err := orders.Decode(&setup); err != nil {
		return fmt.Errorf("read the setup: %w", err)
	}
	trap := newTrap(stdout)
	go obey(orders, trap)

	pool, err := connect(setup)
	if err != nil {
		return err
	}
	defer pool.Close()
	in, err := inbox.New(pool, setup.Consumer, work(trap), config(setup, trap))
	if err != nil {
		return err
	}
	src, err := source(setup)
	if err != nil {
		return err
	}
	return in.Run(ctx, tap(src, trap))
}

// config has a message wait shortly wherever it waits, so that much happens to
// many in the time of a round.
func config(setup wire.Setup, trap *trap) inbox.Config {
	config := inbox.Config{
		Schema:        setup.Schema,
		DrainTimeout:  10 * time.Second,
		QuickAttempts: 2,
		QuickDelay:    5 * time.Millisecond,
		QuickMaxDelay: 50 * time.Millisecond,
		Retry:         inbox.Retry{Attempts: 10_000, Delay: 5 * time.Millisecond, MaxDelay: 100 * time.Millisecond},
		RetryOf:       retryOf,
		Lease:         time.Second,
		WorkAhead:     setup.WorkAhead,
		Observer:      inbox.ObserverFunc(trap.observe),
	}
	if setup.Strict {
		config.Ordering = inbox.Strict
	}
	return config
}

// obey arms the trap as ordered. The end of the orders is the end of the
// parent, and nobody should be left behind.
func obey(orders *json.Decoder, trap *trap) {
	for {
		var o wire.Order
		if orders.Decode(&o) != nil {
			os.Exit(2)
		}
		trap.arm(o)
	}
}

func connect(setup wire.Setup) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(os.Getenv(services.PostgresVariable))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", services.PostgresVariable, err)
	}
	config.MaxConns = connections
	config.ConnConfig.RuntimeParams["search_path"] = setup.Schema
	config.ConnConfig.RuntimeParams["application_name"] = setup.Schema
	return pgxpool.NewWithConfig(context.Background(), config)
}

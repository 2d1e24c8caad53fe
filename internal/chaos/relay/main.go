// Command relay is the relay that chaos kills. It is an ordinary program around
// outbox.Relay; what makes it a victim is a wrapped publisher and a tracer of
// its statements.
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

	"github.com/semel-go/semel/internal/chaos/wire"
	"github.com/semel-go/semel/internal/services"
	"github.com/semel-go/semel/outbox"
)

// connections of a relay: as few as it can do with, because there are many.
const connections = 4

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
	trap := &trap{reports: json.NewEncoder(stdout)}
	go obey(orders, trap)

	pool, err := connect(setup, trap)
	if err != nil {
		return err
	}
	defer pool.Close()
	publisher, end, err := publisherTo(setup, trap)
	if err != nil {
		return err
	}
	defer end()
	relay, err := outbox.NewRelay(pool, publisher, outbox.RelayConfig{
		Schema: setup.Schema,
		Name:   setup.Consumer,
		Lease:  wire.RelayLease, AttemptTimeout: wire.RelayAttempt,
		RetryDelay: 10 * time.Millisecond, RetryMaxDelay: 100 * time.Millisecond,
		Poll: 100 * time.Millisecond,
	})
	if err != nil {
		return err
	}
	return relay.Run(ctx)
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

func connect(setup wire.Setup, trap *trap) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(os.Getenv(services.PostgresVariable))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", services.PostgresVariable, err)
	}
	config.MaxConns = connections
	config.ConnConfig.RuntimeParams["application_name"] = setup.Schema
	config.ConnConfig.Tracer = tracer{trap}
	return pgxpool.NewWithConfig(context.Background(), config)
}

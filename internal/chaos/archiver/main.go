// Command archiver is the purge that chaos kills. It is an ordinary program around
// outbox.Store.Purge, which it calls again and again; what makes it a victim is a
// wrapped archive and a tracer of its statements.
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

// rest is the pause after a purge that found nothing.
const rest = 20 * time.Millisecond

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdin, os.Stdout); err != nil && ctx.Err() == nil {
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

	config, err := pgxpool.ParseConfig(os.Getenv(services.PostgresVariable))
	if err != nil {
		return fmt.Errorf("read %s: %w", services.PostgresVariable, err)
	}
	config.MaxConns = 2
	config.ConnConfig.RuntimeParams["application_name"] = setup.Schema
	config.ConnConfig.Tracer = tracer{trap}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return err
	}
	defer pool.Close()

	store, archive := outbox.NewStore(setup.Schema), &archive{outbox.DirectoryArchive(setup.Archive), trap}
	for ctx.Err() == nil {
		deleted, err := store.Purge(ctx, pool, time.Hour, outbox.PurgeConfig{Batch: wire.ArchiveBatch, Archive: archive})
		if err != nil {
			return err
		}
		if deleted > 0 {
			continue
		}
		select {
		case <-ctx.Done():
		case <-time.After(rest):
		}
	}
	return nil
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

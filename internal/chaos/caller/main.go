// Command caller is the client of a provider that chaos kills. It is an ordinary
// program around inbox.Work and the ledger of calls; what makes it a victim is what
// the ledger traces, and an answer of the provider that it was heard.
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

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel/dedup/calls"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
	"github.com/semel-go/semel/internal/chaos/wire"
	"github.com/semel-go/semel/internal/provider"
	"github.com/semel-go/semel/internal/services"
)

// connections of a caller: few, because there are many.
const connections = 8

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

	pool, err := connect(setup)
	if err != nil {
		return err
	}
	defer pool.Close()
	ledger, err := calls.New(pool, calls.Config{Schema: setup.Schema, Grace: wire.CallGrace, Trace: trap.trace})
	if err != nil {
		return err
	}
	consumer := &consumer{ledger: ledger, client: newClient(setup.Provider, trap), trap: trap}
	in, err := inbox.New(pool, setup.Consumer, consumer.handle, inbox.Config{
		Schema:         setup.Schema,
		Prepare:        consumer.prepare,
		Workers:        setup.Workers,
		HandlerTimeout: 3 * time.Second, // a process that is stopped holds its claims for so long,
		WatchdogGrace:  time.Second,     // and so long
		DrainTimeout:   10 * time.Second,
		QuickAttempts:  2,
		QuickDelay:     5 * time.Millisecond,
		QuickMaxDelay:  50 * time.Millisecond,
		Retry:          inbox.Retry{Attempts: 10_000, Delay: 5 * time.Millisecond, MaxDelay: 100 * time.Millisecond},
		Lease:          2 * time.Second,
		WorkAhead:      setup.WorkAhead,
		Observer:       inbox.ObserverFunc(trap.observe),
	})
	if err != nil {
		return err
	}
	return in.Work(ctx)
}

// consumer makes an invoice for each message, and notes which.
type consumer struct {
	ledger *calls.Ledger
	client *client
	trap   *trap
}

// prepare makes the call.
func (c *consumer) prepare(ctx context.Context, msg *handler.Message) error {
	c.trap.report(wire.Delivered, wire.CopyOf(msg))
	var invoice provider.Invoice
	if err := json.Unmarshal(msg.Payload, &invoice); err != nil {
		return handler.Permanent(err)
	}
	_, err := c.ledger.Do(ctx, msg, wire.CallStep, c.client.create(msg.Type, invoice), c.client.options(msg.Type, invoice))
	if err != nil {
		c.trap.report(wire.Returned, wire.CopyOf(msg))
		return err
	}
	c.trap.pass(wire.BeforeHandlerTx)
	return nil
}

// handle leaves one row. No unique key knows the message, so that a second one is
// not hidden.
func (c *consumer) handle(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
	result, err := c.ledger.Result(ctx, tx, msg, wire.CallStep)
	if err != nil {
		return err
	}
	var receipt provider.Receipt
	if err := json.Unmarshal(result, &receipt); err != nil {
		return handler.Permanent(err)
	}
	_, err = tx.Exec(ctx, `INSERT INTO receipts (message, number, invoice) VALUES ($1, $2, $3)`, msg.ID, receipt.Number, receipt.ID)
	return err
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

package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel/dedup"
	"github.com/semel-go/semel/examples/internal/broker"
	"github.com/semel-go/semel/examples/internal/database"
	"github.com/semel-go/semel/schema"
)

const (
	partitions     = 4
	cleanupTimeout = 20 * time.Second
)

// errWrong ends a run whose sum is not what it must be.
var errWrong = errors.New("invoices are missing, lost or doubled, or attempts were lost: see RESULT")

// run is one run of the example: its services and what it made in them.
type run struct {
	options
	out   io.Writer
	began time.Time

	orders    []order
	server    *database.Server
	kafka     *broker.Kafka
	pool      *pgxpool.Pool
	providers *providers

	name             string // of schema and topic; no other run has it
	kills            int
	attemptsInOutage int64
}

// runExample brings up the services, has the orders confirmed, and tells what
// became of them. Whatever happens, it removes what it made.
func runExample(ctx context.Context, args []string, out io.Writer) error {
	o, err := parseOptions(args, out)
	if err != nil {
		return err
	}
	r := &run{options: o, out: out, began: time.Now(), name: "semel_einvoice_" + strings.ToLower(rand.Text()[:8])}
	if r.orders, err = o.readOrders(); err != nil {
		return err
	}
	if err := r.withServices(ctx); err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("stopped before the end (%w)", err)
		}
		return err
	}
	return nil
}

func (r *run) withServices(ctx context.Context) (err error) {
	if r.server, err = database.Open(ctx, func(text string) { r.say("%s", text) }); err != nil {
		return err
	}
	defer r.server.Close()
	r.say("%s", r.server.About)
	if r.kafka, err = broker.Open(ctx); err != nil {
		return err
	}
	defer r.kafka.Close()
	r.say("%s", r.kafka.About)
	if r.providers, err = startProviders(r.variant); err != nil {
		return err
	}
	defer r.providers.close()
	r.say("providers of documents, each a process; their ledger files are in %s", r.providers.folder)
	if r.pool, err = database.NewPool(ctx, r.server.URL, r.name, "example", 4); err != nil {
		return err
	}
	defer r.pool.Close()
	defer func() { err = errors.Join(err, r.cleanUp(ctx)) }()

	if err := r.prepare(ctx); err != nil {
		return err
	}
	if err := r.work(ctx); err != nil {
		return err
	}
	res, err := r.report(ctx)
	if err != nil {
		return err
	}
	if r.keep && r.server.Own {
		<-ctx.Done() // the tables are there as long as we are
	}
	if !res.ok() {
		return errWrong
	}
	return nil
}

// prepare makes the tables and the topic.
func (r *run) prepare(ctx context.Context) error {
	if _, err := schema.Up(ctx, r.pool, r.name, 0); err != nil {
		return err
	}
	if _, err := r.pool.Exec(ctx, tablesSQL); err != nil {
		return fmt.Errorf("make the tables of the services: %w", err)
	}
	consumers := topicConsumers()
	for _, a := range r.providers.accounts {
		consumers = append(consumers, senderPrefix+a.Name)
	}
	for _, consumer := range consumers {
		if err := dedup.NewStore(r.name).Register(ctx, r.pool, consumer); err != nil {
			return err
		}
	}
	return r.kafka.CreateTopic(ctx, r.name, partitions)
}

// cleanUp removes what prepare made, also after Ctrl-C.
func (r *run) cleanUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	var errs []error
	if !r.kafka.Own {
		for _, consumer := range topicConsumers() {
			errs = append(errs, r.kafka.Forget(ctx, r.name, r.name+"."+consumer))
		}
	}
	if !r.server.Own && !r.keep {
		if _, err := r.pool.Exec(ctx, "DROP SCHEMA IF EXISTS "+pgx.Identifier{r.name}.Sanitize()+" CASCADE"); err != nil {
			errs = append(errs, fmt.Errorf("drop schema %s: %w: drop it by hand", r.name, err))
		}
	}
	return errors.Join(errs...)
}

// say prints what happens, with the time since the start.
func (r *run) say(format string, args ...any) {
	fmt.Fprintf(r.out, "%5.1fs  %s\n", time.Since(r.began).Seconds(), fmt.Sprintf(format, args...))
}

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
var errWrong = errors.New("messages were lost or doubled: see RESULT")

// run is one run of the example: its services and what it made in them.
type run struct {
	options
	out   io.Writer
	began time.Time

	input  *input
	server *database.Server
	kafka  *broker.Kafka
	pool   *pgxpool.Pool

	name     string // of schema and topic; no other run has it
	provider *provider
	kills    int
	torn     int // transactions of the processes that were killed
}

// runExample brings up the services, handles the input, and tells what became
// of it. Whatever happens, it removes what it made.
func runExample(ctx context.Context, args []string, out io.Writer) error {
	o, err := parseOptions(args, out)
	if err != nil {
		return err
	}
	r := &run{options: o, out: out, began: time.Now(), provider: newProvider(), name: "semel_payments_" + strings.ToLower(rand.Text()[:8])}
	in, file, err := r.open()
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // it was only read
	r.input = in
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
	if r.pool, err = database.NewPool(ctx, r.server.URL, r.name, "example", 3); err != nil {
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
		return fmt.Errorf("make the tables of the service: %w", err)
	}
	for _, consumer := range []string{payments, shipping, invoicing} {
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
		for _, consumer := range []string{shipping, invoicing} {
			errs = append(errs, r.kafka.Forget(ctx, r.name, groupOf(r.name, consumer), consumer))
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

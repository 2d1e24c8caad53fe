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
	connections    = 12
	cleanupTimeout = 20 * time.Second
)

// errWrong ends a run whose sum is not what it must be.
var errWrong = errors.New("approvals were lost or took effect twice: see RESULT")

// run is one run of the example: its services and what it made in them.
type run struct {
	options
	out   io.Writer
	began time.Time

	server *database.Server
	kafka  *broker.Kafka
	gate   *broker.Gate
	pool   *pgxpool.Pool
	topic  *topic

	name      string // of schema and topic; no other run has it
	reviewers *reviewers
	away      time.Duration // how long the broker was
	waited    int64         // the most events that waited for it
	kills     int
}

// runExample brings up the services, has merchants approved, and tells what
// became of it. Whatever happens, it removes what it made.
func runExample(ctx context.Context, args []string, out io.Writer) error {
	o, err := parseOptions(args, out)
	if err != nil {
		return err
	}
	r := &run{options: o, out: out, began: time.Now(), name: "semel_merchants_" + strings.ToLower(rand.Text()[:8])}
	if err := r.withServices(ctx); err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("stopped before the end (%w)", err)
		}
		return err
	}
	return nil
}

func (r *run) withServices(ctx context.Context) (err error) {
	r.say("this takes about %.0f seconds, %.0f of which the broker is away", (lead + r.down + trail + 7*time.Second).Seconds(), r.down.Seconds())
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
	if r.gate, err = broker.OpenGate(); err != nil {
		return err
	}
	defer r.gate.Close()
	if r.pool, err = database.NewPool(ctx, r.server.URL, r.name, "example", connections); err != nil {
		return err
	}
	defer r.pool.Close()
	defer func() { err = errors.Join(err, r.cleanUp(ctx)) }()

	ids, err := r.prepare(ctx)
	if err != nil {
		return err
	}
	if r.topic, err = openTopic(r.kafka.Brokers, r.name); err != nil {
		return err
	}
	defer r.topic.client.Close()
	if err := r.work(ctx, ids); err != nil {
		return err
	}
	res, err := r.report(ctx)
	if err != nil {
		return err
	}
	if !res.ok() {
		return errWrong
	}
	return nil
}

// prepare makes the tables, the topic, and the merchants.
func (r *run) prepare(ctx context.Context) (ids []string, err error) {
	if _, err := schema.Up(ctx, r.pool, r.name, 0); err != nil {
		return nil, err
	}
	if _, err := r.pool.Exec(ctx, tablesSQL); err != nil {
		return nil, fmt.Errorf("make the tables of the service: %w", err)
	}
	for _, consumer := range []string{provisioning, searchIndex} {
		if err := dedup.NewStore(r.name).Register(ctx, r.pool, consumer); err != nil {
			return nil, err
		}
	}
	if err := r.kafka.CreateTopic(ctx, r.name, partitions); err != nil {
		return nil, err
	}
	return submit(ctx, r.pool, r.rate*int((lead+r.down+trail)/time.Second))
}

// cleanUp removes what prepare made, also after Ctrl-C.
func (r *run) cleanUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	var errs []error
	if !r.kafka.Own {
		for _, consumer := range []string{provisioning, searchIndex} {
			errs = append(errs, r.kafka.Forget(ctx, r.name, r.name+"."+consumer))
		}
	}
	if !r.server.Own {
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

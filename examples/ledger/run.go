package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"

	"github.com/semel-go/semel/examples/internal/crew"
	"github.com/semel-go/semel/examples/internal/example"
)

//go:embed tables.sql
var tablesSQL string

// run is one run of the example.
type run struct {
	*example.Run
	options
	desk  desk
	meter *meter
	looks []look // of the last second
	kills int
}

func runExample(ctx context.Context, args []string, out io.Writer) (err error) {
	o, err := parseOptions(args, out)
	if err != nil {
		return err
	}
	base, err := example.Open(ctx, out, example.Setup{
		Options: o.Options, Name: name, Tables: tablesSQL, Connections: 4, Partitions: 8,
		Look: []string{`psql "$DATABASE_URL" -c 'SELECT * FROM SCHEMA.entries ORDER BY account, sequence LIMIT 20'`},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, base.Close(ctx)) }()
	r := &run{Run: base, options: o}
	if err := r.work(ctx); err != nil {
		return err
	}
	return r.report(ctx)
}

func (r *run) work(ctx context.Context) error {
	r.Say("%d events a second for %s: %d postings a second, at most %d a transaction; %d relays",
		r.rate, r.length, r.rate/eventsOfPosting, r.batch, r.relays)
	var err error
	if r.meter, err = newMeter(ctx, r.Pool, &r.desk); err != nil {
		return err
	}
	members := []crew.Member{{
		Name: "writer", Part: writerPart, Prints: r.desk.hear,
		Config: writerConfig{Services: r.Services("writer"), Rate: r.rate, Batch: r.batch, Relays: r.relays, For: r.length},
	}}
	for i := range r.relays {
		members = append(members, crew.Member{Name: relayName(i), Part: relayPart, Prints: r.desk.hear, Config: r.Services(relayName(i))})
	}
	c, err := r.Crew(members...)
	if err != nil {
		return err
	}
	tasks := []func(context.Context) error{r.booked}
	if r.kill {
		tasks = append(tasks, func(ctx context.Context) error { return r.killHalfWay(ctx, c) })
	}
	return r.Work(ctx, example.Work{
		Crew: c, Tasks: tasks, Beside: []func(context.Context) error{r.meter.run}, Progress: r.progress, Settled: r.published,
	})
}

func relayName(i int) string { return fmt.Sprintf("relay-%d", i+1) }

// booked returns when all that comes is booked, or will never be.
func (r *run) booked(ctx context.Context) error {
	return r.await(ctx, func(n news) bool { return n.Done })
}

func (r *run) await(ctx context.Context, until func(news) bool) error {
	for !until(r.desk.sum()) {
		if err := example.Wait(ctx, newsEvery); err != nil {
			return err
		}
	}
	return nil
}

// killHalfWay kills a relay with SIGKILL while it has much to do.
func (r *run) killHalfWay(ctx context.Context, c *crew.Crew) error {
	if err := r.await(ctx, func(n news) bool { return !n.Began.IsZero() }); err != nil {
		return err
	}
	if err := example.Wait(ctx, r.length/2); err != nil {
		return err
	}
	r.kills++
	r.Say("%s killed with SIGKILL; its events wait until its lease runs out, in at most %s", relayName(0), lease)
	return c.Replace(relayName(0), func() {})
}

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semel-go/semel/examples/internal/crew"
	"github.com/semel-go/semel/examples/internal/example"
	"github.com/semel-go/semel/schema"
)

const (
	firstKill = 300 * time.Millisecond
	killEvery = time.Second
)

// victims are killed in this order.
var victims = [...]string{"service-1", shipping, "service-2"}

// partConfig is what each process is told.
type partConfig struct {
	example.Services
	Secret  string // of the endpoint for callbacks
	AnyType bool   // types without a route are recorded, not dead
}

// work sends the callbacks while the processes handle them and are killed, and returns
// when everybody has learned of everything.
func (r *run) work(ctx context.Context) error {
	c, err := r.Crew(
		r.member("service-1", servicePart), r.member("service-2", servicePart),
		r.member(shipping, consumerPart), r.member(invoicing, consumerPart),
	)
	if err != nil {
		return err
	}
	return r.Work(ctx, example.Work{
		Crew: c,
		Tasks: []func(context.Context) error{
			func(ctx context.Context) error {
				return errors.Join(r.provider.forge(ctx), r.provider.sendAll(ctx, r.input))
			},
		},
		Beside:   []func(context.Context) error{func(ctx context.Context) error { return r.killNowAndThen(ctx, c) }},
		Progress: r.progress,
	})
}

// member is a process to be. The provider learns where the service is from what its
// processes print.
func (r *run) member(name, part string) crew.Member {
	return crew.Member{
		Name: name, Part: part, Prints: func(line string) { r.provider.found(name, line) },
		Config: partConfig{r.Services(name), r.provider.secret, r.options.input != ""},
	}
}

// killNowAndThen kills one process after the other while there is work.
func (r *run) killNowAndThen(ctx context.Context, c *crew.Crew) error {
	pause := firstKill
	for _, name := range victims {
		if err := example.Wait(ctx, pause); err != nil {
			return err
		}
		inFlight, err := r.KillInFlight(ctx, c, name)
		if err != nil {
			return err
		}
		r.kills++
		r.torn += inFlight
		r.Say("%s killed with SIGKILL in the middle of %d transactions; another process takes its place", name, inFlight)
		pause = killEvery
	}
	return nil
}

// progress says how far the work is.
func (r *run) progress(ctx context.Context) (string, error) {
	var handled, dead, shipped, invoiced int64
	if err := r.Pool.QueryRow(ctx, schema.Qualify(`
		SELECT (SELECT count(*) FROM semel.processed WHERE consumer = $1 AND outcome IN ('processed', 'superseded')),
		       (SELECT count(*) FROM semel.dead_letters),
		       (SELECT count(*) FROM shipments),
		       (SELECT count(*) FROM invoices)`, r.Schema), payments).Scan(&handled, &dead, &shipped, &invoiced); err != nil {
		return "", fmt.Errorf("look how far the work is: %w", err)
	}
	return fmt.Sprintf("%6d callbacks answered %6d handled %4d dead %6d shipped %6d invoiced",
		r.provider.answered.Load(), handled, dead, shipped, invoiced), nil
}

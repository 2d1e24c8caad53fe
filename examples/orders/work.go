package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/semel-go/semel/examples/internal/crew"
	"github.com/semel-go/semel/examples/internal/example"
	"github.com/semel-go/semel/schema"
)

const (
	// pace is between two interchanges, killEvery between two deaths.
	pace      = 40 * time.Millisecond
	killEvery = 2 * time.Second

	intakeProcess = "intake"
	relayProcess  = "relay"
)

// work has the partners deliver while processes are killed, and returns when all that
// follows has happened.
func (r *run) work(ctx context.Context) error {
	member := func(name, part string) crew.Member {
		return crew.Member{Name: name, Part: part, Config: partConfig{r.Services(name), r.folder, r.lenient}}
	}
	members := []crew.Member{member(intakeProcess, intakePart), member(relayProcess, relayPart)}
	for _, name := range topicConsumers() {
		members = append(members, member(name, consumerPart))
	}
	c, err := r.Crew(members...)
	if err != nil {
		return err
	}
	var delivered atomic.Int64
	return r.Work(ctx, example.Work{
		Crew:     c,
		Tasks:    []func(context.Context) error{func(ctx context.Context) error { return r.deliver(ctx, &delivered) }},
		Beside:   []func(context.Context) error{func(ctx context.Context) error { return r.kill(ctx, c) }},
		Progress: func(ctx context.Context) (string, error) { return r.progress(ctx, delivered.Load()) },
		Settled:  r.settled,
	})
}

// deliver puts one file after the other into the folder.
func (r *run) deliver(ctx context.Context, delivered *atomic.Int64) error {
	for _, f := range r.files {
		if err := put(r.folder, f.name, f.data); err != nil {
			return err
		}
		delivered.Add(1)
		if err := example.Wait(ctx, pace); err != nil {
			return err
		}
	}
	return nil
}

// kill kills one process after the other while there is work.
func (r *run) kill(ctx context.Context, c *crew.Crew) error {
	inFlight := func(name string) example.Step {
		return example.Step{After: killEvery, Do: func() error {
			n, err := r.KillInFlight(ctx, c, name)
			if err != nil {
				return err
			}
			r.kills++
			r.Say("%s killed with SIGKILL in the middle of %d transactions; another process takes its place", name, n)
			return nil
		}}
	}
	return example.InTurn(ctx,
		inFlight(intakeProcess),
		example.Step{After: killEvery, Do: func() error {
			r.kills++
			r.Say("%s killed with SIGKILL; another process takes its place", relayProcess)
			return c.Replace(relayProcess, func() {})
		}},
		inFlight(warehouse),
		inFlight(intakeProcess),
	)
}

// progress says how far the work is.
func (r *run) progress(ctx context.Context, delivered int64) (string, error) {
	var accepted, refused, orders, erps, picks, notes int64
	if err := r.Pool.QueryRow(ctx, schema.Qualify(`
		SELECT (SELECT count(*) FROM interchanges),
		       (SELECT count(*) FROM semel.dead_letters),
		       (SELECT count(*) FROM orders),
		       (SELECT count(*) FROM erp_orders),
		       (SELECT count(*) FROM pick_lists),
		       (SELECT count(*) FROM notifications)`, r.Schema)).Scan(&accepted, &refused, &orders, &erps, &picks, &notes); err != nil {
		return "", fmt.Errorf("look how far the work is: %w", err)
	}
	return fmt.Sprintf("%5d files %5d interchanges accepted %3d refused %5d orders %5d in the ERP %5d in the warehouse %5d notified",
		delivered, accepted, refused, orders, erps, picks, notes), nil
}

// settled reports that no file is left, and nothing of what follows from them.
func (r *run) settled(ctx context.Context) (bool, error) {
	if left, err := holds(r.folder); err != nil || left {
		return false, err
	}
	return r.Settled(ctx)
}

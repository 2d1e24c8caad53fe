package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/examples/internal/crew"
	"github.com/semel-go/semel/examples/internal/example"
	"github.com/semel-go/semel/schema"
)

// What goes wrong in a run besides the providers' own faults, one after the other.
const (
	firstKill   = 2 * time.Second
	toThere     = 2 * time.Second // to the maintenance
	secondKill  = 1500 * time.Millisecond
	killPatient = 3 * time.Second
)

func (r *run) disturb(ctx context.Context, c *crew.Crew) error {
	return example.InTurn(ctx,
		example.Step{After: firstKill, Do: func() error { return r.kill(ctx, c, senders()[0]) }},
		example.Step{After: toThere, Do: func() error { return r.maintain(ctx) }},
		example.Step{After: secondKill, Do: func() error { return r.kill(ctx, c, senders()[1]) }},
	)
}

// kill kills a sender with SIGKILL while calls are under way.
func (r *run) kill(ctx context.Context, c *crew.Crew, name string) error {
	for deadline := time.Now().Add(killPatient); time.Now().Before(deadline); {
		var inHand int
		err := r.Pool.QueryRow(ctx, schema.Qualify(`SELECT count(*) FROM semel.calls WHERE lease_until > clock_timestamp()`, r.Schema)).Scan(&inHand)
		if err != nil {
			return fmt.Errorf("look for calls under way: %w", err)
		}
		if inHand >= len(senders()) {
			r.kills++
			r.Say("%s killed with SIGKILL, %d calls under way in all senders; another process takes its place", name, inHand)
			return c.Replace(name, func() {})
		}
		if err := example.Wait(ctx, 5*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// maintain has the providers down for maintenance, and looks what that has cost.
func (r *run) maintain(ctx context.Context) error {
	ends := time.Now().Add(r.maintenance)
	var began time.Time
	if err := r.Pool.QueryRow(ctx, `SELECT clock_timestamp()`).Scan(&began); err != nil {
		return fmt.Errorf("look at the database's clock: %w", err)
	}
	if err := r.providers.maintain(ctx, r.maintenance); err != nil {
		return err
	}
	r.Say("the providers are down for maintenance now, for %s; orders are confirmed all the same, their documents wait", r.maintenance)
	known, err := r.allKnow(ctx, began, ends.Add(-r.maintenance/2))
	if err != nil {
		return err
	}
	if err := example.Wait(ctx, time.Until(ends)-50*time.Millisecond); err != nil { // while all wait, nothing is gone
		return err
	}
	if r.attemptsInOutage, err = attemptsIn(ctx, r.Pool, r.Schema, began, known); err != nil {
		return err
	}
	r.Say("the maintenance is over; it has cost %d attempts", r.attemptsInOutage)
	return nil
}

// allKnow returns since when every sender knows that its provider is away. One that
// has nothing to send does not notice before patience ends: then it is the end of the
// maintenance, since what fails before a breaker opens is the message's failure.
func (r *run) allKnow(ctx context.Context, began, patience time.Time) (known time.Time, err error) {
	gates := len(senders()) * len(r.providers.accounts)
	for time.Now().Before(patience) {
		var away int
		err := r.Pool.QueryRow(ctx, `
			SELECT count(*) FILTER (WHERE away), clock_timestamp()
			FROM (SELECT DISTINCT ON (sender, provider) away FROM gates ORDER BY sender, provider, seq DESC) AS latest`).Scan(&away, &known)
		if err != nil {
			return known, fmt.Errorf("look which senders wait: %w", err)
		}
		if away == gates {
			return known, nil
		}
		if err := example.Wait(ctx, 20*time.Millisecond); err != nil {
			return known, err
		}
	}
	return began.Add(r.maintenance), nil
}

// tellGates prints which senders have begun to wait for their provider, or go on,
// after the news of number last.
func (r *run) tellGates(ctx context.Context, last int64) (int64, error) {
	rows, err := r.Pool.Query(ctx, `SELECT seq, sender, provider, away FROM gates WHERE seq > $1 ORDER BY seq`, last)
	if err == nil {
		var sender, provider string
		var away bool
		_, err = pgx.ForEachRow(rows, []any{&last, &sender, &provider, &away}, func() error {
			if away {
				r.Say("%s finds provider %q away: its breaker opens, what needs it waits", sender, provider)
			} else {
				r.Say("%s finds provider %q back", sender, provider)
			}
			return nil
		})
	}
	if err != nil {
		return last, fmt.Errorf("look which senders wait: %w", err)
	}
	return last, nil
}

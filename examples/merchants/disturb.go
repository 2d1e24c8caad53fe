package main

import (
	"context"
	"fmt"
	"time"

	"github.com/semel-go/semel/examples/internal/crew"
	"github.com/semel-go/semel/examples/internal/example"
	"github.com/semel-go/semel/schema"
)

// disturb is all that goes wrong in a run: a relay is killed at the worst
// moment, the broker goes away, the other relay is killed meanwhile, the broker
// comes back.
func (r *run) disturb(ctx context.Context, c *crew.Crew) error {
	var wentAway time.Time
	return example.InTurn(ctx,
		example.Step{After: lead / 2, Do: func() error { return r.killUnconfirmed(ctx, c, relays[0]) }},
		example.Step{After: lead / 2, Do: func() error {
			r.gate.Shut()
			r.reviewers.brokerIs(true)
			wentAway = time.Now()
			r.Say("the broker is away now, for %s; approvals go on, their events wait in the outbox", r.down)
			return nil
		}},
		example.Step{After: r.down / 2, Do: func() error {
			r.kills++
			r.Say("%s killed with SIGKILL; another process takes its place", relays[1])
			return c.Replace(relays[1], func() {})
		}},
		example.Step{After: r.down / 2, Do: func() error {
			r.gate.Open()
			r.reviewers.brokerIs(false)
			r.away = time.Since(wentAway)
			r.Say("the broker is back")
			return nil
		}},
	)
}

// killUnconfirmed kills a relay with SIGKILL while events that it has sent are
// on the topic and it does not know so yet. They must be published again: who
// takes over cannot know either.
func (r *run) killUnconfirmed(ctx context.Context, c *crew.Crew, name string) error {
	const look, looks, patience = 20 * time.Millisecond, 5, 10 * time.Second
	release := r.gate.Hold(name)
	defer release()
	deadline := time.Now().Add(patience)
	var n int
	for seen := 0; seen < looks && time.Now().Before(deadline); {
		var err error
		if n, err = r.unnoted(ctx, name); err != nil {
			return err
		}
		if seen++; n == 0 {
			seen = 0
		}
		time.Sleep(look)
	}
	r.kills++
	r.Say("%s killed with SIGKILL, %d of its events on the topic and not noted as published; another process takes its place", name, n)
	return c.Replace(name, release)
}

// unnoted counts the events of a relay that are on the topic and not noted as
// published.
func (r *run) unnoted(ctx context.Context, relay string) (n int, err error) {
	err = r.Pool.QueryRow(ctx, schema.Qualify(`
		SELECT count(*)
		FROM semel.outbox AS o
		JOIN semel.relay_leases AS l ON l.lo = o.shard & 252
		JOIN semel.relays AS r ON r.id = l.owner
		WHERE o.published_at IS NULL
		  AND o.id::text = ANY($1)
		  AND r.name = $2`, r.Schema), r.reader.messages(), relay).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("look for events of %s that are not noted: %w", relay, err)
	}
	return n, nil
}

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/outbox"
)

// decision is what a person decides on events.
type decision struct {
	will, did string
	state     string // of those it cannot change, what to say
	do        func(store outbox.Store, ctx context.Context, conn *pgx.Conn, ids []string) ([]string, error)
}

func outboxRetry(ctx context.Context, c *call) error {
	return c.decide(ctx, decision{
		will: "tries again at once", did: "to be tried again", state: "nothing holds it back",
		do: func(store outbox.Store, ctx context.Context, conn *pgx.Conn, ids []string) ([]string, error) {
			return store.Retry(ctx, conn, ids...)
		},
	})
}

func outboxDiscard(ctx context.Context, c *call) error {
	return c.decide(ctx, decision{
		will: "never publishes", did: "discarded", state: "it cannot be discarded",
		do: func(store outbox.Store, ctx context.Context, conn *pgx.Conn, ids []string) ([]string, error) {
			return store.Discard(ctx, conn, ids...)
		},
	})
}

// decide shows what is chosen, and with -yes does it.
func (c *call) decide(ctx context.Context, d decision) error {
	c.needsDatabase()
	f, quarantined := c.eventFilter()
	yes := c.flags.Bool("yes", false, "do it; without it only show the events")
	asJSON := c.flags.Bool("json", false, "print JSON")
	ids, err := c.parse()
	if err != nil {
		return err
	}
	switch {
	case len(ids) > 0 && (*quarantined || f.AggregateType != "" || f.AggregateID != "" || f.Older > 0):
		return c.usage("name events by their ids or choose them by flags, not both")
	case len(ids) == 0 && !*quarantined:
		return c.usage("name events by their ids, or choose those in quarantine with -quarantined")
	case f.Limit < 1:
		return c.usage("-limit must be at least 1")
	}
	if err := c.checkEventIDs(ids); err != nil {
		return err
	}
	f.State = outbox.StateQuarantined
	return c.withOutbox(ctx, func(conn *pgx.Conn, store outbox.Store) error {
		records, err := chosen(ctx, conn, store, ids, *f)
		if err != nil {
			return err
		}
		if !*asJSON {
			if len(records) == 0 {
				fmt.Fprintln(c.stdout, "no events")
				return nil
			}
			fmt.Fprintf(c.stdout, "%s:\n", d.will)
			if err := c.printEvents(records); err != nil {
				return err
			}
		} else if !*yes {
			if err := writeJSON(c.stdout, eventObjects(records)); err != nil {
				return err
			}
		}
		if !*yes {
			return errNotConfirmed
		}
		ids = nil
		for i := range records {
			ids = append(ids, records[i].ID)
		}
		changed, err := d.do(store, ctx, conn, ids)
		return errors.Join(err, c.report(ctx, conn, store, d, ids, changed, *asJSON))
	})
}

// chosen are the events that are named, or else those of a filter.
func chosen(ctx context.Context, conn *pgx.Conn, store outbox.Store, ids []string, f outbox.Filter) ([]outbox.Record, error) {
	if len(ids) == 0 {
		return store.List(ctx, conn, f)
	}
	var records []outbox.Record
	for _, id := range ids {
		r, err := store.Load(ctx, conn, id)
		if err != nil {
			return nil, err
		}
		records = append(records, *r)
	}
	return records, nil
}

// report says what was done, and why the rest was not.
func (c *call) report(ctx context.Context, conn *pgx.Conn, store outbox.Store, d decision, ids, changed []string, asJSON bool) error {
	objects := make([]object, 0, len(ids))
	if !asJSON {
		fmt.Fprintf(c.stdout, "\n%d of %d %s\n", len(changed), len(ids), d.did)
	}
	for _, id := range ids {
		state := "gone"
		if r, err := store.Load(ctx, conn, id); err == nil {
			state = string(r.State)
		} else if !errors.Is(err, outbox.ErrNotFound) {
			return err
		}
		done := slices.Contains(changed, id)
		objects = append(objects, object{"id": id, "changed": done, "state": state})
		if !done && !asJSON {
			fmt.Fprintf(c.stdout, "%s is %s: %s\n", id, state, d.state)
		}
	}
	if asJSON {
		if err := writeJSON(c.stdout, objects); err != nil {
			return err
		}
	}
	if left := len(ids) - len(changed); left > 0 {
		return fmt.Errorf("%d of %d events were not changed", left, len(ids))
	}
	return nil
}

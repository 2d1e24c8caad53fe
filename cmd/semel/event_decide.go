package main

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/outbox"
)

// decideFunc decides on events, and returns those that it changed.
type decideFunc func(store outbox.Store, ctx context.Context, conn *pgx.Conn, ids []string) ([]string, error)

func outboxRetry(ctx context.Context, c *call) error {
	d := decision[string]{will: "tries again at once", did: "to be tried again", unchanged: "nothing holds it back"}
	return c.decideEvents(ctx, d, func(store outbox.Store, ctx context.Context, conn *pgx.Conn, ids []string) ([]string, error) {
		return store.Retry(ctx, conn, ids...)
	})
}

func outboxDiscard(ctx context.Context, c *call) error {
	d := decision[string]{will: "never publishes", did: "discarded", unchanged: "it cannot be discarded"}
	return c.decideEvents(ctx, d, func(store outbox.Store, ctx context.Context, conn *pgx.Conn, ids []string) ([]string, error) {
		return store.Discard(ctx, conn, ids...)
	})
}

func (c *call) decideEvents(ctx context.Context, d decision[string], do decideFunc) error {
	c.needsDatabase()
	d.things = "events"
	f, quarantined := c.eventFilter()
	confirmed := c.confirmFlags(d.things)
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
		records, err := chosenEvents(ctx, conn, store, ids, *f)
		if err != nil {
			return err
		}
		for i := range records {
			d.chosen = append(d.chosen, records[i].ID)
		}
		d.objects = eventObjects(records)
		d.print = func() error { return c.printEvents(records) }
		d.do = func(ids []string) ([]string, error) { return do(store, ctx, conn, ids) }
		d.state = func(id string) (string, error) {
			r, err := store.Load(ctx, conn, id)
			if errors.Is(err, outbox.ErrNotFound) {
				return gone, nil
			}
			if err != nil {
				return "", err
			}
			return string(r.State), nil
		}
		return decide(c, confirmed, d)
	})
}

// chosenEvents are the events that are named, or else those of a filter.
func chosenEvents(ctx context.Context, conn *pgx.Conn, store outbox.Store, ids []string, f outbox.Filter) ([]outbox.Record, error) {
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

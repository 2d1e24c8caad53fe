package main

import (
	"context"
	"fmt"
	"time"

	"github.com/semel-go/semel/examples/internal/crew"
	"github.com/semel-go/semel/examples/internal/example"
	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/schema"
)

// pace is between two orders.
const pace = 50 * time.Millisecond

// senders are the processes that call the providers.
func senders() []string { return []string{"sender-1", "sender-2"} }

// work has the orders confirmed while the providers do what they do and senders are
// killed, and returns when all that follows from the orders has happened.
func (r *run) work(ctx context.Context) error {
	member := func(name, part string) crew.Member {
		return crew.Member{Name: name, Part: part, Config: partConfig{r.Services(name), r.providers.accounts}}
	}
	members := []crew.Member{member("relay", relayPart), member("services", servicesPart)}
	for _, name := range senders() {
		members = append(members, member(name, senderPart))
	}
	c, err := r.Crew(members...)
	if err != nil {
		return err
	}
	var news int64
	return r.Work(ctx, example.Work{
		Crew:  c,
		Tasks: []func(context.Context) error{r.confirm, func(ctx context.Context) error { return r.disturb(ctx, c) }},
		Progress: func(ctx context.Context) (string, error) {
			var err error
			if news, err = r.tellGates(ctx, news); err != nil {
				return "", err
			}
			return r.progress(ctx)
		},
	})
}

// confirm is the ERP at work.
func (r *run) confirm(ctx context.Context) error {
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for _, o := range r.orders {
		if err := (erp{outbox.NewWriter(r.Schema)}).confirm(ctx, r.Pool, o); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
	return nil
}

// progress says how far the work is.
func (r *run) progress(ctx context.Context) (string, error) {
	var orders, sent, waiting, dead int64
	if err := r.Pool.QueryRow(ctx, schema.Qualify(`
		SELECT (SELECT count(*) FROM orders),
		       (SELECT count(*) FROM invoice_requests WHERE status = 'SENT'),
		       (SELECT count(*) FROM semel.inbox_messages WHERE ready_at IS NOT NULL),
		       (SELECT count(*) FROM semel.dead_letters)`, r.Schema)).Scan(&orders, &sent, &waiting, &dead); err != nil {
		return "", fmt.Errorf("look how far the work is: %w", err)
	}
	return fmt.Sprintf("%5d orders confirmed %5d documents sent %5d wait %3d dead", orders, sent, waiting, dead), nil
}

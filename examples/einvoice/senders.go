package main

import (
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/semel-go/semel/breaker"
	"github.com/semel-go/semel/dedup/calls"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
)

// runSender sends documents to all providers.
func runSender(ctx context.Context, c partConfig) error {
	pool, err := c.Pool(ctx, 12)
	if err != nil {
		return err
	}
	defer pool.Close()
	var senders []*inbox.Inbox
	for _, a := range c.Accounts {
		in, err := newSenderInbox(pool, c, newAPI(a, c.Logger()))
		if err != nil {
			return err
		}
		senders = append(senders, in)
	}
	g, ctx := errgroup.WithContext(ctx)
	for _, in := range senders {
		g.Go(func() error { return in.Work(ctx) })
	}
	return g.Wait()
}

// newSenderInbox returns the inbox of the sender to one provider, as the adapter
// stores into it and as senders work it.
func newSenderInbox(pool *pgxpool.Pool, c partConfig, api api) (*inbox.Inbox, error) {
	ledger, err := calls.New(pool, calls.Config{Schema: c.Schema, Grace: callGrace, Logger: c.Logger()})
	if err != nil {
		return nil, err
	}
	s, err := newSender(api, ledger)
	if err != nil {
		return nil, err
	}
	return inbox.New(pool, senderPrefix+api.Name, handler.JSON(s.sent), inbox.Config{
		Schema:          c.Schema,
		Workers:         4,
		Prepare:         s.prepare,
		Gates:           []*breaker.Breaker{api.breaker},
		Ordering:        inbox.Strict,
		HandlerTimeout:  3 * callTimeout, // it asks, and calls
		Lease:           6 * callTimeout, // what a killed process had waits that long
		DrainTimeout:    5 * time.Second,
		DeadLetterOwner: "billing",
		Observer:        gateNotes{pool, c.Name, api.Name},
		Logger:          c.Logger(),
	})
}

// gateNotes notes when a sender pauses and goes on, for the report.
type gateNotes struct {
	pool             *pgxpool.Pool
	sender, provider string
}

// Observe implements [inbox.Observer].
func (n gateNotes) Observe(ctx context.Context, e inbox.Event) {
	if e.Kind == inbox.Paused || e.Kind == inbox.Resumed {
		_, _ = n.pool.Exec(ctx, `INSERT INTO gates (sender, provider, away) VALUES ($1, $2, $3)`, n.sender, n.provider, e.Kind == inbox.Paused)
	}
}

// providerOf is where the document of an order goes: by the customer's country, if
// there is a choice.
func providerOf(o order, accounts []account) account {
	if strings.HasPrefix(o.TaxNumber, "FR") {
		return accounts[len(accounts)-1]
	}
	return accounts[0]
}

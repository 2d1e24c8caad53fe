package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel/outbox"
)

// This file is what to copy: the books and the events that tell of them change
// together, in few round trips for many postings.

// ledger books postings. It is safe for concurrent use.
type ledger struct {
	pool   *pgxpool.Pool
	events outbox.Writer
	wake   func() // the relays
}

// account is a row that is ours until the transaction ends.
type account struct{ balance, sequence int64 }

// book books all of the postings or, with an error, none, in one transaction. The
// accounts are locked first, in the order of their ids, so that two writers can wait
// for each other and never both at once. That lock is also what puts the events of
// an account in order: who writes next waits, and draws later numbers.
func (l *ledger) book(ctx context.Context, postings []posting) error {
	err := pgx.BeginFunc(ctx, l.pool, func(tx pgx.Tx) error {
		accounts, err := lock(ctx, tx, postings)
		if err != nil {
			return err
		}
		changes, events, err := enter(accounts, postings)
		if err != nil {
			return err
		}
		if err := changes.send(ctx, tx); err != nil {
			return err
		}
		return l.events.Write(ctx, tx, events...)
	})
	if err != nil {
		return fmt.Errorf("book %d postings: %w", len(postings), err)
	}
	l.wake()
	return nil
}

// lock locks the accounts of the postings.
func lock(ctx context.Context, tx pgx.Tx, postings []posting) (map[string]*account, error) {
	var ids []string
	for _, p := range postings {
		ids = append(ids, p.from, p.to)
	}
	rows, err := tx.Query(ctx, `SELECT id, balance, sequence FROM accounts WHERE id = ANY ($1) ORDER BY id FOR UPDATE`, ids)
	if err != nil {
		return nil, fmt.Errorf("lock the accounts: %w", err)
	}
	accounts := make(map[string]*account, len(ids))
	var id string
	var a account
	_, err = pgx.ForEachRow(rows, []any{&id, &a.balance, &a.sequence}, func() error {
		locked := a
		accounts[id] = &locked
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("lock the accounts: %w", err)
	}
	return accounts, nil
}

// errOverdrawn is returned for a posting that would take what is not there.
var errOverdrawn = errors.New("account is overdrawn")

// enter enters both legs of each posting in their accounts. It returns what is to be
// written, and the events that tell of it.
func enter(accounts map[string]*account, postings []posting) (*changes, []outbox.Event, error) {
	c := &changes{}
	events := make([]outbox.Event, 0, eventsOfPosting*len(postings))
	orders := make(map[string]posting, len(postings)) // what came of each in the end
	for _, p := range postings {
		for _, leg := range [...]struct {
			account string
			amount  int64
		}{{p.from, -p.amount}, {p.to, p.amount}} {
			a := accounts[leg.account]
			if a == nil {
				return nil, nil, fmt.Errorf("posting %s: account %q does not exist", p.id, leg.account)
			}
			a.balance += leg.amount
			a.sequence++
			if a.balance < 0 {
				return nil, nil, fmt.Errorf("posting %s: %w: %q", p.id, errOverdrawn, leg.account)
			}
			c.entries.add(p.id, leg.account, leg.amount, *a)
			events = append(events, entryPosted{leg.account, leg.amount, a.balance, p.id, p.order}.event(a.sequence))
		}
		c.postings.add(p)
		orders[p.order] = p
		events = append(events, orderChanged{p.order, p.status, p.amount}.event(p.sequence))
	}
	for id, a := range accounts {
		c.accounts.add(id, *a)
	}
	for _, p := range orders {
		c.orders.add(p)
	}
	return c, events, nil
}

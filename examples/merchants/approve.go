package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel/outbox"
)

// This file is what to copy: a change and the event that tells of it, in one
// transaction. No broker has a part in it.

var (
	errNoMerchant   = errors.New("no such merchant")
	errStale        = errors.New("the merchant has changed since you looked at it")
	errAccountTaken = errors.New("the payout account belongs to another merchant")
)

// The event, as consumers know it.
const (
	merchantType  = "merchant"
	approvedEvent = "merchant.approved"
)

// approved is its payload.
type approved struct {
	MerchantID string `json:"merchant_id"`
	Name       string `json:"name"`
}

// aggregateID is the ordering key of a merchant's events.
func aggregateID(merchant string) string { return "merchant:" + merchant }

// approvals approves merchants.
type approvals struct {
	pool   *pgxpool.Pool
	events outbox.Writer
	wake   func() // tells the relays that there is something to publish
}

// approve approves a merchant whose reviewer has seen it at a sequence number.
// It reports false for one that was approved already, which changes nothing.
//
// The update holds the merchant's row to the end of the transaction: no other
// event of this merchant can come between.
func (a approvals) approve(ctx context.Context, id string, seen int64) (now bool, err error) {
	err = pgx.BeginFunc(ctx, a.pool, func(tx pgx.Tx) error {
		var name, iban string
		var sequence int64
		err := tx.QueryRow(ctx, `
			UPDATE merchants
			SET status = 'approved', sequence = sequence + 1
			WHERE id = $1 AND sequence = $2
			RETURNING name, iban, sequence`, id, seen).Scan(&name, &iban, &sequence)
		if err != nil {
			return err
		}
		payload, err := json.Marshal(approved{MerchantID: id, Name: name})
		if err != nil {
			return err
		}
		if err := a.events.Write(ctx, tx, outbox.Event{
			AggregateType: merchantType,
			AggregateID:   aggregateID(id),
			Type:          approvedEvent,
			Version:       sequence,
			Payload:       payload,
			ContentType:   "application/json",
		}); err != nil {
			return err
		}
		// If the account is taken, status and event go with the transaction.
		_, err = tx.Exec(ctx, `INSERT INTO payout_accounts (iban, merchant_id) VALUES ($1, $2)`, iban, id)
		return err
	})
	var refused *pgconn.PgError
	switch {
	case err == nil:
		a.wake() // only now: before the commit there is nothing to see
		return true, nil
	case errors.Is(err, pgx.ErrNoRows):
		return false, a.whyNot(ctx, id)
	case errors.As(err, &refused) && refused.ConstraintName == "payout_accounts_pkey":
		err = errAccountTaken
	}
	return false, fmt.Errorf("approve merchant %q: %w", id, err)
}

// whyNot says why a merchant was not at the sequence number that its reviewer
// had seen. Nil: somebody has approved it already.
func (a approvals) whyNot(ctx context.Context, id string) error {
	var status string
	err := a.pool.QueryRow(ctx, `SELECT status FROM merchants WHERE id = $1`, id).Scan(&status)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		err = errNoMerchant
	case err == nil && status != "approved":
		err = errStale
	}
	if err != nil {
		return fmt.Errorf("approve merchant %q: %w", id, err)
	}
	return nil
}

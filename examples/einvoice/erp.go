package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/outbox"
)

// erp confirms orders and, when their payment fails, cancels them.
type erp struct{ events outbox.Writer }

// confirm writes an order and the event that tells of it, in one transaction. One
// that is known already is left as it is.
func (e erp) confirm(ctx context.Context, pool *pgxpool.Pool, o order) error {
	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `
			INSERT INTO orders (id, customer, tax_number, amount, card)
			VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT (id) DO NOTHING`, o.ID, o.Customer, o.TaxNumber, o.Amount, o.Card)
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		return e.tell(ctx, tx, o, orderConfirmed)
	})
	if err != nil {
		return fmt.Errorf("confirm order %q: %w", o.ID, err)
	}
	return nil
}

// cancel is the compensation: it handles [paymentFailed], a transaction and an
// event of its own.
func (e erp) cancel(ctx context.Context, tx pgx.Tx, o order, _ *handler.Message) error {
	err := tx.QueryRow(ctx, `
		UPDATE orders
		SET status = 'CANCELLED'
		WHERE id = $1 AND status = 'CONFIRMED'
		RETURNING customer, tax_number, amount, card`, o.ID).Scan(&o.Customer, &o.TaxNumber, &o.Amount, &o.Card)
	if errors.Is(err, pgx.ErrNoRows) {
		return handler.Permanent(fmt.Errorf("cancel order %q: there is none that is confirmed", o.ID))
	}
	if err != nil {
		return err
	}
	return e.tell(ctx, tx, o, orderCancelled)
}

func (e erp) tell(ctx context.Context, tx pgx.Tx, o order, kind string) error {
	event, err := o.event("order", kind)
	if err != nil {
		return err
	}
	return e.events.Write(ctx, tx, event)
}

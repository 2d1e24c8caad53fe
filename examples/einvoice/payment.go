package main

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/outbox"
)

// cashier takes the payment of each order.
type cashier struct{ events outbox.Writer }

// charge handles [orderConfirmed]. A payment that fails is told to others, who know
// what to undo.
func (c cashier) charge(ctx context.Context, tx pgx.Tx, o order, _ *handler.Message) error {
	status := "PAID"
	if o.Card == declined {
		status = "FAILED"
	}
	if _, err := tx.Exec(ctx, `INSERT INTO payments (order_id, status) VALUES ($1, $2)`, o.ID, status); err != nil {
		return err
	}
	if o.Card != declined {
		return nil
	}
	event, err := o.event("payment", paymentFailed)
	if err != nil {
		return err
	}
	return c.events.Write(ctx, tx, event)
}

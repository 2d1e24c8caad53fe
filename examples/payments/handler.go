package main

import (
	"cmp"
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/handler"
)

// This file is what to copy: the handler of a service that books payments. It
// guards against nothing that comes twice; its engine does.

// newHandler routes the provider's events. Others handles every other type; nil
// sends them to the dead letters.
func newHandler(others handler.Func) handler.Func {
	return handler.Mux(map[string]handler.Func{
		"payment_intent.succeeded":      handler.JSON(paid),
		"payment_intent.payment_failed": handler.JSON(declined),
		"charge.refunded":               handler.JSON(refunded),
		malformedType:                   refuseLine,
	}, others)
}

// paid books a payment: the order becomes paid, the customer's balance goes up.
func paid(ctx context.Context, tx pgx.Tx, e event, msg *handler.Message) error {
	p := e.object()
	return book(ctx, tx, msg, p, entry{amount: p.Amount, paid: p.Amount})
}

// refunded books a refund. It may come before its payment: both add to the
// order, so the order ends the same.
func refunded(ctx context.Context, tx pgx.Tx, e event, msg *handler.Message) error {
	p := e.object()
	return book(ctx, tx, msg, p, entry{amount: -p.AmountRefunded, refunded: p.AmountRefunded})
}

// declined notes a payment that failed. No money moves.
func declined(ctx context.Context, tx pgx.Tx, e event, msg *handler.Message) error {
	return book(ctx, tx, msg, e.object(), entry{declined: 1})
}

// entry is what one event adds.
type entry struct{ amount, paid, refunded, declined int64 }

// book adds an entry to the order, to the balance and to the journal. Done
// twice, every one of these would show it: none has a key that hides it.
func book(ctx context.Context, tx pgx.Tx, msg *handler.Message, p payment, e entry) error {
	if e.declined == 0 && max(e.paid, e.refunded) <= 0 {
		return handler.Permanent(fmt.Errorf("book a %s: its amount must be positive", msg.Type))
	}
	order := cmp.Or(p.Metadata.OrderID, p.OrderID, p.PaymentIntent, p.ID, msg.ID)
	account := cmp.Or(p.Customer, "guest")
	if _, err := tx.Exec(ctx, `
		INSERT INTO orders AS o (id, account, paid, refunded, declined)
		VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (id) DO UPDATE
		SET paid = o.paid + excluded.paid, refunded = o.refunded + excluded.refunded, declined = o.declined + excluded.declined`,
		order, account, e.paid, e.refunded, e.declined); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `
		INSERT INTO accounts AS a (id, balance)
		VALUES ($1, $2)
		ON CONFLICT (id) DO UPDATE
		SET balance = a.balance + excluded.balance`,
		account, e.amount); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `INSERT INTO effects (message, type, order_id, account, amount) VALUES ($1, $2, $3, $4, $5)`,
		msg.ID, msg.Type, order, account, e.amount)
	return err
}

// event is the part of a provider's event that this service reads. Stripe wraps
// the payment or charge in data.object; some others send it bare.
type event struct {
	Data struct {
		Object *payment `json:"object"`
	} `json:"data"`
	payment
}

type payment struct {
	ID             string `json:"id"`
	PaymentIntent  string `json:"payment_intent"`
	Customer       string `json:"customer"`
	Amount         int64  `json:"amount"`
	AmountRefunded int64  `json:"amount_refunded"`
	OrderID        string `json:"order_id"`
	Metadata       struct {
		OrderID string `json:"order_id"`
	} `json:"metadata"`
}

func (e *event) object() payment {
	if e.Data.Object != nil {
		return *e.Data.Object
	}
	return e.payment
}

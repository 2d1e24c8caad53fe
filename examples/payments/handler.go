package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/dedup"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/outbox"
)

// This file is what to copy, too: the handler of a service that books payments. It
// guards against nothing that comes twice; its engine does.

// The event that tells others of a paid order.
const orderPaidType = "OrderPaid"

// orderPaid is its payload.
type orderPaid struct {
	OrderID string `json:"order_id"`
	Amount  int64  `json:"amount"`
}

// newHandler routes the provider's events. Others handles every other type.
//
// Each event carries the whole of its payment as it was then, and they come in any
// order. So the guard lets what is older than what was booked end as superseded: a
// payment that was refunded does not become paid again.
func newHandler(schemaName string, events outbox.Writer, others handler.Func) handler.Func {
	newest := dedup.NewStore(schemaName).VersionGuard(dedup.GuardConfig{Kind: "payment", Entity: paymentOf, Version: dedup.ByTime})
	paid := func(ctx context.Context, tx pgx.Tx, e event, msg *handler.Message) error {
		return bookPaid(ctx, tx, events, e.object(), msg)
	}
	return handler.Mux(map[string]handler.Func{
		"payment_intent.succeeded":      newest(handler.JSON(paid)),
		"payment_intent.payment_failed": newest(handler.JSON(bookDeclined)),
		"charge.refunded":               newest(handler.JSON(bookRefunded)),
		malformedType:                   handler.JSON(refuseLine),
	}, others)
}

// bookPaid books a payment: the order becomes paid, the customer's balance goes up,
// and an event tells who ships and who writes the invoice.
func bookPaid(ctx context.Context, tx pgx.Tx, events outbox.Writer, p payment, msg *handler.Message) error {
	order, sequence, err := book(ctx, tx, msg, p, state{paid: p.Amount})
	if err != nil {
		return err
	}
	payload, err := json.Marshal(orderPaid{OrderID: order, Amount: p.Amount})
	if err != nil {
		return err
	}
	return events.Write(ctx, tx, outbox.Event{
		AggregateType: "order", AggregateID: order, Version: sequence, Type: orderPaidType, Payload: payload, ContentType: "application/json",
	})
}

// bookRefunded books a refund, and its payment with it if that has not come yet.
// Nobody ships then.
func bookRefunded(ctx context.Context, tx pgx.Tx, e event, msg *handler.Message) error {
	p := e.object()
	_, _, err := book(ctx, tx, msg, p, state{paid: max(p.Amount, p.AmountRefunded), refunded: p.AmountRefunded})
	return err
}

// bookDeclined notes a payment that failed. No money moves.
func bookDeclined(ctx context.Context, tx pgx.Tx, e event, msg *handler.Message) error {
	_, _, err := book(ctx, tx, msg, e.object(), state{declined: 1})
	return err
}

// state is what is known of a payment.
type state struct{ paid, refunded, declined int64 }

// book notes what is known of a payment, and adds what is new to the order and to the
// balance. It returns the order, and the number of its change.
func book(ctx context.Context, tx pgx.Tx, msg *handler.Message, p payment, now state) (order string, sequence int64, err error) {
	if now.declined == 0 && max(now.paid, now.refunded) <= 0 {
		return "", 0, handler.Permanent(fmt.Errorf("book a %s: its amount must be positive", msg.Type))
	}
	order = cmp.Or(p.Metadata.OrderID, p.OrderID, p.PaymentIntent, p.ID, msg.ID)
	account := cmp.Or(p.Customer, "guest")
	var paid, refunded int64 // the difference
	if err := tx.QueryRow(ctx, `
		INSERT INTO payments AS p (id, paid, refunded)
		VALUES ($1, $2, $3)
		ON CONFLICT (id) DO UPDATE
		SET was_paid = p.paid, was_refunded = p.refunded,
		    paid = greatest(p.paid, excluded.paid), refunded = greatest(p.refunded, excluded.refunded)
		RETURNING paid - was_paid, refunded - was_refunded`,
		cmp.Or(p.id(), msg.ID), now.paid, now.refunded).Scan(&paid, &refunded); err != nil {
		return "", 0, err
	}
	if err := tx.QueryRow(ctx, `
		INSERT INTO orders AS o (id, account, paid, refunded, declined)
		VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (id) DO UPDATE
		SET paid = o.paid + excluded.paid, refunded = o.refunded + excluded.refunded, declined = o.declined + excluded.declined,
		    sequence = o.sequence + 1
		RETURNING sequence`,
		order, account, paid, refunded, now.declined).Scan(&sequence); err != nil {
		return "", 0, err
	}
	if _, err := tx.Exec(ctx, `
		INSERT INTO accounts AS a (id, balance)
		VALUES ($1, $2)
		ON CONFLICT (id) DO UPDATE
		SET balance = a.balance + excluded.balance`,
		account, paid-refunded); err != nil {
		return "", 0, err
	}
	_, err = tx.Exec(ctx, `INSERT INTO effects (message, type, order_id, account, amount) VALUES ($1, $2, $3, $4, $5)`,
		msg.ID, msg.Type, order, account, paid-refunded)
	return order, sequence, err
}

// refuseType sends an event of another type to the dead letters at once. Without a
// handler for it the engine would leave it to a newer version of this service, for a
// day.
func refuseType(_ context.Context, _ pgx.Tx, msg *handler.Message) error {
	return handler.Permanent(fmt.Errorf("this service books no %.80s", msg.Type))
}

// event is the part of a provider's event that this service reads. Stripe wraps
// the payment or charge in data.object.
type event struct {
	Data struct {
		Object payment `json:"object"`
	} `json:"data"`
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

func (e event) object() payment { return e.Data.Object }

// id is the payment's: a charge names the one that it belongs to.
func (p payment) id() string { return cmp.Or(p.PaymentIntent, p.ID) }

// paymentOf is the payment that a message is about. What cannot be read the handler
// refuses.
func paymentOf(msg *handler.Message) []byte {
	var e event
	_ = json.Unmarshal(msg.Payload, &e)
	return []byte(e.object().id())
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/examples/internal/edifact"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/outbox"
)

// This file is what to copy: the handler that takes an interchange. It guards against
// nothing that comes twice; its engine does.

// The event that tells others of an order.
const (
	orderAggregate    = "Order"
	orderReceivedType = "OrderReceived"
)

// orderReceived is its payload.
type orderReceived struct {
	OrderID  string `json:"order_id"`
	Partner  string `json:"partner"`
	Number   string `json:"number"`
	Currency string `json:"currency"`
	Total    string `json:"total"`
	Lines    int    `json:"lines"`
}

// intake takes interchanges.
type intake struct {
	parser edifact.Parser
	events outbox.Writer
}

// interchangeID is the id of a message: what the partner calls its interchange, to us
// or to another one that we receive for. One
// that is sent again is a copy; another one under the same reference is a mismatch,
// and in front of a person.
func interchangeID(msg *handler.Message) (string, error) {
	in, err := edifact.ParseHeader(msg.Payload)
	if err != nil {
		return "", err
	}
	return url.PathEscape(in.Sender) + "/" + url.PathEscape(in.Recipient) + "/" + url.PathEscape(in.ControlRef), nil
}

// receive takes an interchange as a whole or not at all. The orders, their events and
// the claim of the interchange are one transaction.
func (i intake) receive(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
	in, orders, err := i.read(msg.Payload)
	if err != nil {
		return handler.Permanent(fmt.Errorf("%w: %w", handler.ErrUndecodable, err))
	}
	var partner string
	err = tx.QueryRow(ctx, `SELECT name FROM partners WHERE id = $1`, in.Sender).Scan(&partner)
	if errors.Is(err, pgx.ErrNoRows) {
		return handler.Permanent(in.Header.Errorf(2, "%q is no partner: make it one and replay this, or discard it", in.Sender))
	}
	if err != nil {
		return err
	}
	id, err := interchangeID(msg)
	if err != nil {
		return err
	}
	for _, o := range orders {
		if err := i.store(ctx, tx, id, in.Sender, o); err != nil {
			return err
		}
	}
	warnings := []string{}
	for _, w := range in.Warnings {
		warnings = append(warnings, w.Error())
	}
	_, err = tx.Exec(ctx, `INSERT INTO interchanges (id, partner, orders, warnings) VALUES ($1, $2, $3, $4)`, id, partner, len(orders), warnings)
	return err
}

// read reads an interchange and its orders.
func (i intake) read(data []byte) (*edifact.Interchange, []order, error) {
	in, err := i.parser.Parse(data)
	if err != nil {
		return nil, nil, err
	}
	var orders []order
	var errs []error
	for _, m := range in.Messages {
		o, err := readOrder(in.Sender, m)
		if err == nil && slices.ContainsFunc(orders, func(other order) bool { return other.ID == o.ID }) {
			err = m.Header.Errorf(0, "order %q is in the interchange twice", o.Number)
		}
		orders, errs = append(orders, o), append(errs, err)
	}
	// All interchanges lock orders in one sequence, so that none waits for another
	// that waits for it.
	slices.SortFunc(orders, func(a, b order) int { return strings.Compare(a.ID, b.ID) })
	return in, orders, errors.Join(errs...)
}

// store stores an order and tells others of it.
func (i intake) store(ctx context.Context, tx pgx.Tx, interchange, partner string, o order) error {
	// The same order may be in two interchanges at once: one of them waits here.
	if err := outbox.Lock(ctx, tx, orderAggregate, o.ID); err != nil {
		return err
	}
	total := o.Total.FloatString(2)
	tag, err := tx.Exec(ctx, `
		INSERT INTO orders (id, partner, number, currency, total, raw, interchange_id)
		SELECT $1, $2, $3, $4, $5::numeric, $6, $7
		WHERE NOT EXISTS (SELECT FROM orders WHERE id = $1)`,
		o.ID, partner, o.Number, o.Currency, total, o.Raw, interchange)
	if err != nil {
		return err
	}
	if tag.RowsAffected() == 0 {
		return handler.Permanent(fmt.Errorf("order %q was received before, in another interchange", o.ID))
	}
	payload, err := json.Marshal(orderReceived{o.ID, partner, o.Number, o.Currency, total, o.Lines})
	if err != nil {
		return err
	}
	return i.events.Write(ctx, tx, outbox.Event{
		AggregateType: orderAggregate, AggregateID: o.ID, Version: 1, Type: orderReceivedType,
		Payload: payload, ContentType: "application/json",
	})
}

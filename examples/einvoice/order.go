package main

import (
	"encoding/json"
	"fmt"
	"regexp"

	"github.com/semel-go/semel/internal/provider"
	"github.com/semel-go/semel/outbox"
)

// The events of an order's life, as all services know them.
const (
	orderConfirmed = "OrderConfirmed"
	paymentFailed  = "PaymentFailed"
	orderCancelled = "OrderCancelled"
)

// order is what a customer ordered, in the ERP's tables and in its events.
type order struct {
	ID        string `json:"id"`
	Customer  string `json:"customer"`
	TaxNumber string `json:"tax_number"`
	Amount    int    `json:"amount"` // cents
	Card      string `json:"card,omitempty"`
}

// idPattern is what an order's id looks like: it becomes part of invoice numbers.
var idPattern = regexp.MustCompile(`^[0-9A-Za-z._-]{1,64}$`)

// declined is a card that the bank refuses.
const declined = "declined"

// event is an event about the order. All of them are one conversation, under the
// order's id.
func (o order) event(aggregate, kind string) (outbox.Event, error) {
	payload, err := json.Marshal(o)
	return outbox.Event{
		AggregateType: aggregate,
		AggregateID:   o.ID,
		Type:          kind,
		CorrelationID: o.ID,
		Payload:       payload,
		ContentType:   "application/json",
	}, err
}

// invoice is the document that asks for the money, creditNote the one that takes
// it back: what was sent cannot be unsent. The numbers are our own.
func (o order) invoice() provider.Invoice    { return o.document("INV-", o.Amount) }
func (o order) creditNote() provider.Invoice { return o.document("CN-", -o.Amount) }

func (o order) document(prefix string, amount int) provider.Invoice {
	return provider.Invoice{Number: prefix + o.ID, TaxNumber: o.TaxNumber, Amount: amount}
}

// check refuses what no order is.
func (o order) check() error {
	switch {
	case !idPattern.MatchString(o.ID):
		return fmt.Errorf("its id is %.70q, it must have 1 to 64 letters, digits and .-_ only", o.ID)
	case o.Amount <= 0:
		return fmt.Errorf("order %q is over %d cents, it must be over more than none", o.ID, o.Amount)
	}
	return nil
}

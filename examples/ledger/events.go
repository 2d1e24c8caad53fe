package main

import (
	"encoding/json"

	"github.com/semel-go/semel/outbox"
)

// The aggregates, each with its events in order, and what happens to them.
const (
	accountKind     = "account"
	entryPostedType = "EntryPosted"

	orderKind        = "order"
	orderChangedType = "OrderStatusChanged"
)

// eventsOfPosting: an entry in each of two accounts, and an order.
const eventsOfPosting = 3

// entryPosted is what is told of an account: enough to keep a statement of it.
type entryPosted struct {
	Account string `json:"account"`
	Amount  int64  `json:"amount"`
	Balance int64  `json:"balance"` // behind it
	Posting string `json:"posting"`
	Order   string `json:"order"`
}

func (e entryPosted) event(sequence int64) outbox.Event {
	return outbox.Event{
		AggregateType: accountKind, AggregateID: e.Account, Type: entryPostedType, Version: sequence,
		ContentType: "application/json", CorrelationID: e.Order, Payload: encode(e),
	}
}

// orderChanged is what is told of an order.
type orderChanged struct {
	Order  string `json:"order"`
	Status string `json:"status"`
	Amount int64  `json:"amount"`
}

func (e orderChanged) event(sequence int64) outbox.Event {
	return outbox.Event{
		AggregateType: orderKind, AggregateID: e.Order, Type: orderChangedType, Version: sequence,
		ContentType: "application/json", CorrelationID: e.Order, Payload: encode(e),
	}
}

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // not of strings and numbers
	}
	return b
}

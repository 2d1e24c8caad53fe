package main

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/examples/internal/as2"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/outbox"
)

// The event, as consumers know it.
const (
	interchangeType = "interchange"
	receivedEvent   = "EdiMessageReceived"
)

// received is its payload.
type received struct {
	UNBRef    string `json:"unbRef"`
	Sender    string `json:"sender"`
	Recipient string `json:"recipient"`
	Raw       string `json:"raw"` // a claim check
}

// delivery is the message that the hub's inbox gets of a post.
type delivery struct {
	received
	Request as2.Request
	MIC     string
	At      time.Time
}

// journal is the hub's handler. Row, event, MDN and the record that the message
// was taken commit together: from then on the message is ours, and not before.
type journal struct {
	events    outbox.Writer
	responder as2.Responder
}

func (j journal) take(ctx context.Context, tx pgx.Tx, d delivery, msg *handler.Message) error {
	mdn := j.responder.Answer(&d.Request, as2.Answer{Disposition: as2.Processed, MIC: d.MIC, At: d.At})
	if _, err := tx.Exec(ctx, `
		INSERT INTO interchanges (id, partner, message_id, unb_ref, sender, recipient, raw, received_at, mdn)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
		msg.ID, d.Request.From, d.Request.MessageID, d.UNBRef, d.Sender, d.Recipient, d.Raw, d.At, mdn.Bytes()); err != nil {
		return err
	}
	payload, err := json.Marshal(d.received)
	if err != nil {
		return err
	}
	return j.events.Write(ctx, tx, outbox.Event{
		AggregateType: interchangeType,
		AggregateID:   msg.ID, // interchanges wait for no other
		Type:          receivedEvent,
		Payload:       payload,
		ContentType:   "application/json",
		OccurredAt:    d.At,
	}) // its correlation id is that of the message: it began the conversation
}

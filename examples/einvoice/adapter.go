package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
	"github.com/semel-go/semel/internal/provider"
)

// documentType is the type of the messages that senders handle.
const documentType = "document.requested"

// adapter maps orders to documents. It calls nobody: a provider that is away must
// not hold up what comes from the ERP.
type adapter struct {
	senderOf func(order) *inbox.Inbox
}

// request asks for the document that an order needs now. The request, the message
// to the sender and the claim of the event are in one transaction. The order's id is
// the message's key: a credit note never overtakes its invoice.
func (a adapter) request(documentOf func(order) provider.Invoice) handler.Func {
	return handler.JSON(func(ctx context.Context, tx pgx.Tx, o order, msg *handler.Message) error {
		document := documentOf(o)
		payload, err := json.Marshal(document)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `INSERT INTO invoice_requests (order_id, number, payload) VALUES ($1, $2, $3)`, o.ID, document.Number, payload); err != nil {
			return err
		}
		outcome, err := a.senderOf(o).StoreTx(ctx, tx, &handler.Message{
			ID:            document.Number,
			Type:          documentType,
			Key:           []byte(o.ID),
			CorrelationID: msg.CorrelationID,
			CausationID:   msg.ID,
			Payload:       payload,
		})
		if err == nil && outcome != handler.Stored {
			return handler.Permanent(fmt.Errorf("request document %q: it was requested before (%s)", document.Number, outcome))
		}
		return err
	})
}

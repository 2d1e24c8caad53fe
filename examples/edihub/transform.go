package main

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/handler"
)

// transformer makes canonical JSON of interchanges.
type transformer struct{ claims claims }

// handle is its handler. What is wrong within an interchange no attempt can mend:
// it is a dead letter at once, and its error says where to look.
func (t transformer) handle(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
	var e received
	if err := json.Unmarshal(msg.Payload, &e); err != nil {
		return handler.Permanent(err)
	}
	raw, err := t.claims.redeem(ctx, e.Raw)
	if err != nil {
		return err
	}
	d, err := canonical(raw)
	if err != nil {
		return handler.Permanent(err)
	}
	text, err := json.Marshal(d)
	if err != nil {
		return handler.Permanent(err)
	}
	_, err = tx.Exec(ctx, `INSERT INTO documents (interchange, event, document) VALUES ($1, $2, $3)`, msg.CorrelationID, msg.ID, string(text))
	return err
}

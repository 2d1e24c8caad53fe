package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/dedup/calls"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/internal/provider"
)

// This file is what to copy: a call to somebody else that takes effect once,
// whatever happens to the answer and to this process.

const (
	createStep = "create-document"

	// callTimeout is how long a provider may take, callGrace how long after it a
	// request may still be worked on there: asked sooner, it could not know.
	callTimeout = time.Second
	callGrace   = time.Second
)

// sender has one provider make documents.
type sender struct {
	api    api
	ledger *calls.Ledger
	call   calls.Options
}

func newSender(api api, ledger *calls.Ledger) (sender, error) {
	s := sender{api: api, ledger: ledger, call: calls.Options{Timeout: callTimeout}}
	if !api.Keys {
		// Without idempotency keys: ask for our own number first, and send only if
		// the provider does not have it.
		s.call.KeyTTL = -1
		s.call.AskFirst = true
		s.call.WasItDone = func(ctx context.Context, c calls.Call) ([]byte, calls.Answer, error) {
			return api.find(ctx, c.Message)
		}
	}
	return s, ledger.Check(createStep, s.call)
}

// prepare makes the call: before the transaction begins, on no connection. The
// ledger knows whether it was made, and what it came to.
func (s sender) prepare(ctx context.Context, msg *handler.Message) error {
	_, err := s.ledger.Do(ctx, msg, createStep, func(ctx context.Context, key string) ([]byte, error) {
		return s.api.create(ctx, key, msg.ID, msg.Payload)
	}, s.call)
	return err
}

// sent notes the provider's id of the document, in the transaction that settles the
// message.
func (s sender) sent(ctx context.Context, tx pgx.Tx, document provider.Invoice, msg *handler.Message) error {
	id, err := s.ledger.Result(ctx, tx, msg, createStep)
	if err != nil {
		return err
	}
	tag, err := tx.Exec(ctx, `
		UPDATE invoice_requests
		SET status = 'SENT', provider_id = $2
		WHERE number = $1 AND status = 'PENDING'`, document.Number, string(id))
	if err == nil && tag.RowsAffected() != 1 {
		err = handler.Permanent(fmt.Errorf("note that document %q was sent: %w", document.Number, errNotRequested))
	}
	return err
}

var errNotRequested = errors.New("it was not requested, or is noted already")

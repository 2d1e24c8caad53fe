package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
)

// callTimeout bounds a call to the configuration API.
const callTimeout = 2 * time.Second

// runProvisioning is the consumer that configures each approved merchant with
// somebody else's API.
//
// The call is no part of the transaction, so it can be made more than once: it
// is made again if this process dies before the commit, and if the answer is
// lost on the way. The merchant's id as idempotency key makes all of them one.
func runProvisioning(ctx context.Context, c partConfig) error {
	client := &http.Client{Timeout: callTimeout}
	return consume(ctx, c, provisioning, inbox.Config{
		HandlerTimeout: 2 * callTimeout,
		Prepare:        func(ctx context.Context, msg *handler.Message) error { return configure(ctx, client, c.API, msg) },
	}, handler.JSON(noteProvisioned))
}

// configure asks for the configuration of a merchant. It runs before the
// transaction begins: no connection waits for the API.
func configure(ctx context.Context, client *http.Client, api string, msg *handler.Message) error {
	var e approved
	if err := json.Unmarshal(msg.Payload, &e); err != nil || e.MerchantID == "" {
		return nil // for the handler to refuse
	}
	body, err := json.Marshal(configuration{MerchantID: e.MerchantID})
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, api+"/configurations", bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Idempotency-Key", e.MerchantID)
	resp, err := client.Do(req)
	if err != nil {
		return handler.Unavailable(fmt.Errorf("configure merchant %q: %w", e.MerchantID, err))
	}
	defer resp.Body.Close()               //nolint:errcheck // it was only read
	_, _ = io.Copy(io.Discard, resp.Body) // so that the connection can be used again
	switch {
	case resp.StatusCode < 300:
		return nil
	case resp.StatusCode < 500:
		return handler.Permanent(fmt.Errorf("configure merchant %q: the API refuses with %s", e.MerchantID, resp.Status))
	default:
		return handler.Unavailable(fmt.Errorf("configure merchant %q: the API answers %s", e.MerchantID, resp.Status))
	}
}

// noteProvisioned notes that a merchant is configured.
func noteProvisioned(ctx context.Context, tx pgx.Tx, e approved, msg *handler.Message) error {
	if e.MerchantID == "" {
		return handler.Permanent(fmt.Errorf("provision a merchant: the event names none"))
	}
	_, err := tx.Exec(ctx, `INSERT INTO provisioned (merchant_id, message) VALUES ($1, $2)`, e.MerchantID, msg.ID)
	return err
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/semel-go/semel/breaker"
	"github.com/semel-go/semel/breaker/httpbreaker"
	"github.com/semel-go/semel/dedup/calls"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/internal/provider"
)

// api is a provider's API. All calls go through its breaker.
type api struct {
	account

	client  *http.Client
	breaker *breaker.Breaker
}

// account is what we have with a provider.
type account struct {
	Name string
	URL  string
	Keys bool // it knows idempotency keys
}

// opensAfter is how many failures in a row open the breaker of a provider.
const opensAfter = 3

func newAPI(a account, logger *slog.Logger) api {
	t := httpbreaker.New(httpbreaker.Config{
		Name:    func(*http.Request) string { return a.Name },
		Breaker: breaker.Config{Failures: opensAfter, OpenFor: 500 * time.Millisecond}, // sooner than by default, as all is in an example
		Logger:  logger,
	})
	return api{account: a, client: t.Client(), breaker: t.Breaker(a.Name)}
}

// create has the provider make a document, and returns its id there.
func (a api) create(ctx context.Context, key, number string, document []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.URL, bytes.NewReader(document))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if a.Keys {
		req.Header.Set("Idempotency-Key", key)
	}
	var made provider.Receipt
	if err := a.do(req, &made); err != nil {
		return nil, fmt.Errorf("send document %q to %s: %w", number, a.Name, err)
	}
	if made.Number != number {
		return nil, fmt.Errorf("send document %q to %s: the answer is about another one", number, a.Name)
	}
	return []byte(made.ID), nil
}

// find asks the provider for the document of a number.
func (a api) find(ctx context.Context, number string) ([]byte, calls.Answer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.URL+"?number="+url.QueryEscape(number), nil)
	if err != nil {
		return nil, calls.Unclear, err
	}
	var made []provider.Receipt
	if err := a.do(req, &made); err != nil {
		return nil, calls.Unclear, fmt.Errorf("ask %s for document %q: %w", a.Name, number, err)
	}
	switch {
	case len(made) == 0:
		return nil, calls.No, nil
	case made[0].Number != number:
		return nil, calls.Unclear, fmt.Errorf("ask %s for document %q: the answer is about another one", a.Name, number)
	}
	return []byte(made[0].ID), calls.Yes, nil
}

// do sends a request and reads the answer. Its error says whose fault it is.
func (a api) do(req *http.Request, answer any) error {
	resp, err := a.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()  //nolint:errcheck // it was only read
	switch resp.StatusCode { // what its documentation says
	case http.StatusConflict:
		return handler.InFlight(errors.New("a call under this key is still being worked on"))
	case http.StatusUnprocessableEntity:
		var refusal struct{ Error string }
		_ = json.NewDecoder(io.LimitReader(resp.Body, 1<<10)).Decode(&refusal) // without a reason it is refused as well
		return handler.Permanent(fmt.Errorf("it refuses the %.64q", refusal.Error))
	}
	if err := httpbreaker.Check(resp); err != nil {
		return err
	}
	return json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(answer)
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/semel-go/semel/breaker"
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

func newAPI(a account) api {
	return api{
		account: a,
		client:  &http.Client{},
		breaker: breaker.New(a.Name, breaker.Config{
			OpenFor:   500 * time.Millisecond, // shorter than by default, as all is in an example
			IsFailure: func(err error) bool { return !handler.IsPermanent(err) && !handler.IsInFlight(err) },
		}),
	}
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
	return a.breaker.Do(req.Context(), func(ctx context.Context) error {
		resp, err := a.client.Do(req.WithContext(ctx))
		if err != nil {
			return handler.Unavailable(err)
		}
		defer resp.Body.Close() //nolint:errcheck // it was only read
		body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
		if err != nil {
			return handler.Unavailable(err)
		}
		switch code := resp.StatusCode; {
		case code < 300:
			return json.Unmarshal(body, answer)
		case code == http.StatusConflict: // the call before it is still being worked on
			return handler.InFlight(fmt.Errorf("it answers %s", resp.Status))
		case code < 500:
			var refusal struct{ Error string }
			_ = json.Unmarshal(body, &refusal) // then there is only the status
			return handler.Permanent(fmt.Errorf("it refuses with %s: %.64q", resp.Status, refusal.Error))
		}
		if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil {
			a.breaker.HoldUntil(time.Now().Add(time.Duration(seconds) * time.Second))
		}
		return handler.Unavailable(fmt.Errorf("it answers %s", resp.Status))
	})
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"net/url"

	"github.com/semel-go/semel/dedup/calls"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/internal/chaos/wire"
	"github.com/semel-go/semel/internal/provider"
)

// errNotOurs is of an answer to somebody else's question: what a provider sent twice
// can be taken for the answer to the next request on its connection.
var errNotOurs = errors.New("the provider's answer is about something else")

// client calls the provider. Only a no that nothing can change is an end; all else
// that is no answer leaves it open whether the work was done.
type client struct {
	url  string
	http *http.Client
	trap *trap
}

func newClient(url string, trap *trap) *client {
	return &client{url: url, http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: connections}}, trap: trap}
}

// path is where invoices of a type of message are made.
func path(kind string) string {
	if kind == wire.Keyed {
		return "/keyed/invoices"
	}
	return "/invoices"
}

// options are those of the call of a type of message.
func (c *client) options(kind string, invoice provider.Invoice) calls.Options {
	o := calls.Options{Timeout: wire.CallTimeout}
	if kind == wire.Keyed {
		return o
	}
	o.KeyTTL, o.AskFirst = -1, kind == wire.AskedFirst
	o.WasItDone = func(ctx context.Context, _ calls.Call) ([]byte, calls.Answer, error) {
		return c.find(ctx, kind, invoice.Number)
	}
	return o
}

// create is the call that makes an invoice.
func (c *client) create(kind string, invoice provider.Invoice) calls.Func {
	return func(ctx context.Context, key string) ([]byte, error) {
		body, err := json.Marshal(invoice)
		if err != nil {
			return nil, handler.Permanent(err)
		}
		heard := &httptrace.ClientTrace{Got1xxResponse: func(int, textproto.MIMEHeader) error {
			c.trap.pass(wire.AfterSend)
			return nil
		}}
		req, err := http.NewRequestWithContext(httptrace.WithClientTrace(ctx, heard), http.MethodPost, c.url+path(kind), bytes.NewReader(body))
		if err != nil {
			return nil, handler.Permanent(err)
		}
		req.Header.Set("Idempotency-Key", key)
		req.Header.Set("Prefer", "processing")
		var receipt provider.Receipt
		answer, status, err := c.do(req, &receipt)
		switch {
		case err != nil:
			return nil, err
		case status == http.StatusUnprocessableEntity, status == http.StatusBadRequest:
			return nil, handler.Permanent(fmt.Errorf("the provider refuses with %d", status))
		case status != http.StatusCreated:
			return nil, fmt.Errorf("the provider answers %d", status)
		case receipt.Number != invoice.Number:
			return nil, errNotOurs
		}
		c.trap.pass(wire.AfterAnswer)
		return answer, nil
	}
}

// find asks for the invoice of a number.
func (c *client) find(ctx context.Context, kind, number string) ([]byte, calls.Answer, error) {
	query := url.Values{"number": {number}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url+path(kind)+"?"+query.Encode(), nil)
	if err != nil {
		return nil, calls.Unclear, err
	}
	var receipts []json.RawMessage
	_, status, err := c.do(req, &receipts)
	switch {
	case err != nil:
		return nil, calls.Unclear, err
	case status != http.StatusOK:
		return nil, calls.Unclear, fmt.Errorf("the provider answers %d", status)
	case len(receipts) == 0:
		return nil, calls.No, nil
	}
	var receipt provider.Receipt
	if err := json.Unmarshal(receipts[0], &receipt); err != nil || receipt.Number != number {
		return nil, calls.Unclear, errNotOurs
	}
	return receipts[0], calls.Yes, nil
}

// do sends a request and reads its answer.
func (c *client) do(req *http.Request, into any) (answer []byte, status int, err error) {
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, 0, err
	}
	defer resp.Body.Close() //nolint:errcheck // it was only read
	answer, err = io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode < 300 {
		if json.Unmarshal(answer, into) != nil {
			err = errNotOurs
		}
	}
	return answer, resp.StatusCode, err
}

package provider

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

	"github.com/semel-go/semel/handler"
)

// ErrNotOurs is of an answer to somebody else's question: what a provider sent twice
// can be taken for the answer to the next request on its connection.
var ErrNotOurs = errors.New("the provider's answer is about something else")

// Client calls a provider. Only a no that nothing can change is an end, and marked by
// [handler.Permanent]; any other error leaves it open whether the work was done.
type Client struct {
	// URL is where the provider is.
	URL string

	// Keyed says that it knows idempotency keys. To one that does not none is sent:
	// net/http by itself repeats a request that has one, when a connection breaks.
	Keyed bool

	// HTTP sends the requests.
	HTTP *http.Client

	// Heard, if set, is called when the provider has a request and did not answer yet.
	Heard func()
}

// Create makes an invoice, and returns its receipt as it came.
func (c *Client) Create(ctx context.Context, key string, invoice Invoice) ([]byte, error) {
	body, err := json.Marshal(invoice)
	if err != nil {
		return nil, handler.Permanent(err)
	}
	if c.Heard != nil {
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{Got1xxResponse: func(int, textproto.MIMEHeader) error {
			c.Heard()
			return nil
		}})
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.invoices(), bytes.NewReader(body))
	if err != nil {
		return nil, handler.Permanent(err)
	}
	if c.Keyed {
		req.Header.Set("Idempotency-Key", key)
	}
	if c.Heard != nil {
		req.Header.Set("Prefer", "processing")
	}
	var receipt Receipt
	answer, status, err := c.do(req, &receipt)
	switch {
	case err != nil:
		return nil, err
	case status == http.StatusUnprocessableEntity, status == http.StatusBadRequest:
		return nil, handler.Permanent(fmt.Errorf("the provider refuses invoice %s with %d", invoice.Number, status))
	case status != http.StatusCreated:
		return nil, fmt.Errorf("the provider answers %d", status)
	case receipt.Number != invoice.Number:
		return nil, ErrNotOurs
	}
	return answer, nil
}

// Find asks for the invoice of a number.
func (c *Client) Find(ctx context.Context, number string) (receipt []byte, found bool, err error) {
	query := url.Values{"number": {number}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.invoices()+"?"+query.Encode(), nil)
	if err != nil {
		return nil, false, err
	}
	var receipts []json.RawMessage
	_, status, err := c.do(req, &receipts)
	switch {
	case err != nil:
		return nil, false, err
	case status != http.StatusOK:
		return nil, false, fmt.Errorf("the provider answers %d", status)
	case len(receipts) == 0:
		return nil, false, nil
	}
	var first Receipt
	if err := json.Unmarshal(receipts[0], &first); err != nil || first.Number != number {
		return nil, false, ErrNotOurs
	}
	return receipts[0], true, nil
}

func (c *Client) invoices() string {
	if c.Keyed {
		return c.URL + "/keyed/invoices"
	}
	return c.URL + "/invoices"
}

// do sends a request and reads its answer.
func (c *Client) do(req *http.Request, into any) (answer []byte, status int, err error) {
	resp, err := c.HTTP.Do(req)
	if err != nil {
		return nil, 0, err
	}
	defer resp.Body.Close() //nolint:errcheck // it was only read
	answer, err = io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode < 300 && json.Unmarshal(answer, into) != nil {
		err = ErrNotOurs
	}
	return answer, resp.StatusCode, err
}

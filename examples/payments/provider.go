package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/semel-go/semel/transports/webhook"
)

const (
	// senders are how many callbacks the provider has under way at once, and
	// patience is how long it waits for an answer.
	senders  = 16
	patience = 2 * time.Second
	again    = 50 * time.Millisecond

	// Callbacks come in small groups. The first ones come at the pace of a busy
	// endpoint, so that there is something to see; the rest of a large input as
	// fast as they are answered.
	groupSize  = 64
	groupPause = 50 * time.Millisecond
	paced      = 8000
)

// forgedID is the event of the callback that somebody else has signed.
const forgedID = "evt_forged"

// errNobody is why a callback cannot be sent yet.
var errNobody = errors.New("the service has not started")

// provider is a payment provider: it signs each callback and sends it until it is
// answered that it arrived.
type provider struct {
	secret string
	client *http.Client

	sent, answered, repeated atomic.Int64
	refused                  int64 // forged callbacks

	mu   sync.Mutex // guards what follows
	urls map[string]string
	next int
}

func newProvider() *provider {
	return &provider{
		secret: newSecret(), urls: make(map[string]string),
		client: &http.Client{Timeout: patience, Transport: &http.Transport{MaxIdleConnsPerHost: senders}},
	}
}

func newSecret() string { return "whsec_" + rand.Text() }

// found tells where a process of the service takes callbacks.
func (p *provider) found(name, url string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.urls[name] = url
}

// url is where the next callback goes, empty while nobody is there: the turns that a
// load balancer takes.
func (p *provider) url() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next++
	return p.urls[fmt.Sprintf("service-%d", p.next%2+1)]
}

// sendAll sends a callback for each line of the input.
func (p *provider) sendAll(ctx context.Context, in *input) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(senders)
	for {
		c, err := in.next()
		if errors.Is(err, io.EOF) {
			return g.Wait()
		}
		if err != nil {
			return errors.Join(err, g.Wait())
		}
		g.Go(func() error { return p.send(ctx, c.body) })
		if n := p.sent.Add(1); n%groupSize == 0 && n <= paced {
			select {
			case <-ctx.Done():
			case <-time.After(groupPause):
			}
		}
	}
}

// send sends a callback until it is answered.
func (p *provider) send(ctx context.Context, body []byte) error {
	for {
		status, err := p.post(ctx, p.secret, body)
		if err == nil && status/100 == 2 {
			p.answered.Add(1)
			return nil
		}
		if !errors.Is(err, errNobody) {
			p.repeated.Add(1)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(again):
		}
	}
}

// forge sends a callback that is signed with another secret, until it is answered.
func (p *provider) forge(ctx context.Context) error {
	body := fmt.Appendf(nil, `{"id":%q,"type":"payment_intent.succeeded","created":%d,"data":{"object":{"id":"pi_forged","amount":1000000,"customer":"cus_forged"}}}`,
		forgedID, time.Now().Unix())
	secret := newSecret()
	for ctx.Err() == nil {
		switch status, err := p.post(ctx, secret, body); {
		case err == nil && status == http.StatusUnauthorized:
			p.refused++
			return nil
		case err == nil && status/100 == 2:
			return nil // the tables will show it
		}
		time.Sleep(again)
	}
	return ctx.Err()
}

// post sends a callback once.
func (p *provider) post(ctx context.Context, secret string, body []byte) (status int, err error) {
	url := p.url()
	if url == "" {
		return 0, errNobody
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	r.Header.Set("Content-Type", "application/json; charset=utf-8")
	if err := webhook.Stripe(secret).Sign(r, time.Now()); err != nil {
		return 0, err
	}
	resp, err := p.client.Do(r)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()                 //nolint:errcheck // it was only read
	_, err = io.Copy(io.Discard, resp.Body) // so that the connection can be used again
	return resp.StatusCode, err
}

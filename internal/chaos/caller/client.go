package main

import (
	"context"
	"time"

	"github.com/semel-go/semel/breaker"
	"github.com/semel-go/semel/breaker/httpbreaker"
	"github.com/semel-go/semel/dedup/calls"
	"github.com/semel-go/semel/internal/chaos/wire"
	"github.com/semel-go/semel/internal/provider"
)

// client calls the provider.
type client struct {
	keyed, keyless *provider.Client
	trap           *trap
}

// newClient has a breaker that opens now and then, shortly.
func newClient(url string, trap *trap) *client {
	sender := httpbreaker.New(httpbreaker.Config{
		Breaker: breaker.Config{OpenFor: 50 * time.Millisecond, OpenMax: 200 * time.Millisecond},
		Budget:  breaker.BudgetConfig{PerSecond: 100},
	}).Client()
	heard := func() { trap.pass(wire.AfterSend) }
	return &client{
		keyed:   &provider.Client{URL: url, Keyed: true, HTTP: sender, Heard: heard},
		keyless: &provider.Client{URL: url, HTTP: sender, Heard: heard},
		trap:    trap,
	}
}

// create is the call that makes an invoice.
func (c *client) create(kind string, invoice provider.Invoice) calls.Func {
	return func(ctx context.Context, key string) ([]byte, error) {
		to := c.keyless
		if kind == wire.Keyed {
			to = c.keyed
		}
		receipt, err := to.Create(ctx, key, invoice)
		if err == nil {
			c.trap.pass(wire.AfterAnswer)
		}
		return receipt, err
	}
}

// options are those of the call of a type of message.
func (c *client) options(kind string, invoice provider.Invoice) calls.Options {
	o := calls.Options{Timeout: wire.CallTimeout}
	if kind == wire.Keyed {
		return o
	}
	o.KeyTTL, o.AskFirst = -1, kind == wire.AskedFirst
	o.WasItDone = func(ctx context.Context, _ calls.Call) ([]byte, calls.Answer, error) {
		receipt, found, err := c.keyless.Find(ctx, invoice.Number)
		switch {
		case err != nil:
			return nil, calls.Unclear, err
		case found:
			return receipt, calls.Yes, nil
		}
		return nil, calls.No, nil
	}
	return o
}

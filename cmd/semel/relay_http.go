package main

import (
	"cmp"
	"context"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/transports/webhook"
)

// Where the endpoint may be given instead of -http, and what signs; secrets only so.
const (
	webhookVariable       = "WEBHOOK_URL"
	webhookSecretVariable = "WEBHOOK_SECRET" //nolint:gosec // the name of a variable
)

// httpFlags say where and how to post events.
type httpFlags struct {
	url       string
	timeout   time.Duration
	atOnce    int
	plainText bool
}

const (
	defaultHTTPTimeout = 4 * time.Second
	defaultHTTPAtOnce  = 100
)

func (c *call) httpFlags() *httpFlags {
	f := &httpFlags{}
	c.flags.StringVar(&f.url, "http", "", "post each event to this `URL`, signed with $"+webhookSecretVariable+" (whsec_...; several, separated by spaces, while one is rotated); if it holds a password, better set $"+webhookVariable)
	c.flags.DurationVar(&f.timeout, "http-timeout", 0, "HTTP: how long the endpoint may take to answer (default "+defaultHTTPTimeout.String()+")")
	c.flags.IntVar(&f.atOnce, "http-at-once", 0, "HTTP: how many requests may be out at once, one of each aggregate (default 100)")
	c.flags.BoolVar(&f.plainText, "http-allow-plain", false, "HTTP: allow a URL without TLS to another machine: whoever is between reads the events, and can answer in its place")
	return f
}

func (f *httpFlags) given() bool { return *f != httpFlags{} }

// httpTarget gives an attempt the time that a request may take and a quarter more, so
// that a request which takes too long is known as one.
func (c *call) httpTarget(f *httpFlags, cfg *outbox.RelayConfig) (*target, error) {
	from, address := "-http", f.url
	if address == "" {
		from, address = "$"+webhookVariable, os.Getenv(webhookVariable)
	}
	secrets := strings.Fields(os.Getenv(webhookSecretVariable))
	timeout, atOnce := cmp.Or(f.timeout, defaultHTTPTimeout), cmp.Or(f.atOnce, defaultHTTPAtOnce)
	if f.timeout == 0 {
		timeout = min(timeout, cfg.Lease*2/5)
	}
	switch {
	case address == "":
		return nil, c.usage("no endpoint: give -http or set $%s, for example https://shop.example.com/hook", webhookVariable)
	case len(secrets) == 0:
		return nil, c.usage("nothing to sign with: set $%s to whsec_ and 24 to 64 random bytes in base64; the endpoint must know it too", webhookSecretVariable)
	case timeout < time.Millisecond || timeout > cfg.Lease*2/5:
		return nil, c.usage("-http-timeout is %s; it must be from 1ms to two fifths of -lease, %s", timeout, cfg.Lease*2/5)
	case atOnce < 1 || atOnce > 10_000:
		return nil, c.usage("-http-at-once is %d; it must be from 1 to 10000", atOnce)
	}
	publisher, err := webhook.NewPublisher(address, secrets[0], webhook.PublisherConfig{
		MoreSecrets: secrets[1:], RequestTimeout: timeout, Concurrency: atOnce, AllowPlain: f.plainText, Logger: cfg.Logger,
	})
	if err != nil {
		return nil, c.usage("post to the URL in %s with the secrets in $%s: %s", from, webhookSecretVariable, err)
	}
	cfg.AttemptTimeout = timeout * 5 / 4
	host := ""
	if u, err := url.Parse(address); err == nil {
		host = u.Host
	}
	return &target{name: "http " + host, publisher: publisher, close: func(context.Context) error {
		publisher.CloseIdleConnections()
		return nil
	}}, nil
}

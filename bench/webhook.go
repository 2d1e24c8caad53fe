package main

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/semel-go/semel/bench/byhand"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
	"github.com/semel-go/semel/transports/webhook"
)

const (
	// callers are the connections on which a provider calls at once.
	callers = 8

	webhookSecret = "whsec_example_not_a_real_secret"
)

// stripeEvent is an event as large as those about a charge are, with ID in place of
// its id.
//
//go:embed webhook_event.json
var stripeEvent string

// webhookStore compares how fast signed callbacks are received over HTTP and stored.
func (b *bench) webhookStore(ctx context.Context) (result, error) {
	bare, ours, done, err := webhookServers(ctx)
	if err != nil {
		return result{}, err
	}
	defer done()
	called := func(name string, e *endpoint) side {
		return side{name, func(ctx context.Context) (float64, error) {
			if err := e.empty(ctx); err != nil {
				return 0, err
			}
			return rate(ctx, callers, b.round, fresh, e.call)
		}}
	}
	r, err := b.pairs(ctx, called("semel", ours), called("by hand", bare))
	r.details = append(r.details, fmt.Sprintf("%d connections, events of %d bytes", callers, len(stripeEvent)))
	return r, err
}

// webhookLatency is how much later the answer comes than that of the handler by hand.
func (b *bench) webhookLatency(ctx context.Context) (result, error) {
	bare, ours, done, err := webhookServers(ctx)
	if err != nil {
		return result{}, err
	}
	defer done()
	called := func(name string, e *endpoint) side {
		return side{name, func(ctx context.Context) (float64, error) {
			if err := e.empty(ctx); err != nil {
				return 0, err
			}
			var times stopwatch
			if err := paced(ctx, b.round, times.timing(e.call)); err != nil {
				return 0, err
			}
			return times.p99()
		}}
	}
	r, err := b.compare(ctx, difference("%.2f ms"), called("semel", ours), called("by hand", bare))
	r.details = append(r.details, fmt.Sprintf("p99 at %d callbacks/s of %d bytes", time.Second/latencyPace, len(stripeEvent)))
	return r, err
}

// webhookServers starts both, on the same pool, and warms them up.
func webhookServers(ctx context.Context) (bare, ours *endpoint, done func(), err error) {
	db, err := newDatabase(ctx, workers)
	if err != nil {
		return nil, nil, nil, err
	}
	preset := webhook.Stripe(webhookSecret)
	in, err := inbox.New(db.pool, "bench", work, inbox.Config{Schema: db.schema, Logger: silent(), Fingerprint: preset.Fingerprint})
	if err != nil {
		return nil, nil, db.drop, err
	}
	hook, err := webhook.NewHandler(in, preset, webhook.Config{Logger: silent()})
	if err != nil {
		return nil, nil, db.drop, err
	}
	ours = &endpoint{empty: func(ctx context.Context) error { return db.exec(ctx, `TRUNCATE inbox_messages, processed_messages`) }}
	bare = &endpoint{empty: func(ctx context.Context) error { return db.exec(ctx, `TRUNCATE callbacks`) }}
	done = func() {
		ours.close()
		bare.close()
		db.drop()
	}
	for _, e := range []struct {
		*endpoint
		handler http.Handler
	}{{ours, hook}, {bare, &byhand.Webhook{Pool: db.pool, Secret: []byte(webhookSecret)}}} {
		if err == nil {
			err = e.start(preset, e.handler)
		}
		if err == nil {
			_, err = rate(ctx, callers, time.Second, fresh, e.call)
		}
	}
	if err != nil {
		done()
		return nil, nil, nil, fmt.Errorf("start and warm up: %w", err)
	}
	return bare, ours, done, nil
}

// endpoint is a server on the loopback, and a provider that calls it.
type endpoint struct {
	empty  func(context.Context) error
	preset webhook.Preset
	server *http.Server
	client *http.Client
	url    string
}

func (e *endpoint) start(preset webhook.Preset, h http.Handler) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	e.preset, e.url = preset, "http://"+listener.Addr().String()
	e.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}}
	e.server = &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	go func() { _ = e.server.Serve(listener) }() // until it is closed
	return nil
}

func (e *endpoint) close() {
	if e.server != nil {
		e.client.CloseIdleConnections()
		_ = e.server.Close()
	}
}

// call sends an event with the message's id.
func (e *endpoint) call(ctx context.Context, msg *handler.Message) error {
	body := strings.Replace(stripeEvent, "ID", "evt_"+msg.ID, 1)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, strings.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json; charset=utf-8")
	if err := e.preset.Sign(r, time.Now()); err != nil {
		return err
	}
	response, err := e.client.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("callback %s was answered %s", msg.ID, response.Status)
	}
	return nil
}

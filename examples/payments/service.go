package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"github.com/semel-go/semel/examples/internal/example"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/transports/kafka"
	"github.com/semel-go/semel/transports/webhook"
)

// This file is what to copy: a service that takes callbacks, answers at once,
// handles them later, and tells others. Any number of its processes share the work.

const (
	// payments is the consumer of the callbacks.
	payments = "payments"

	// endpoint is the first part of every message's id: the provider's name.
	endpoint = "stripe"

	// workers handle callbacks at once in each process.
	workers = 4

	// A process that is killed takes what it had in hand with it: how long until
	// others take that over. By default it is a minute.
	lease = 4 * time.Second
)

// serve is the service. It runs until ctx ends, and then drains.
func serve(ctx context.Context, c partConfig) error {
	pool, err := c.Pool(ctx, 3*workers)
	if err != nil {
		return err
	}
	defer pool.Close()
	client, err := kgo.NewClient(append(kafka.WithinAttempt(lease/4), kgo.SeedBrokers(c.Brokers...))...)
	if err != nil {
		return err
	}
	defer client.Close()

	notifier := outbox.NewNotifier(pool, c.Schema)
	h := newHandler(c.Schema, outbox.NewWriter(c.Schema).AfterCommit(notifier.Wake), c.others())
	in, err := inbox.New(pool, payments, handler.Chain(h, handler.Log(c.Logger())), inbox.Config{
		Schema: c.Schema, Workers: workers,
		HandlerTimeout: lease / 2, Lease: lease, DrainTimeout: 2 * time.Second, Logger: c.Logger(),
	})
	if err != nil {
		return err
	}
	hook, err := webhook.NewHandler(in, webhook.Stripe(c.Secret), webhook.Config{Endpoint: endpoint, MaxBody: maxBody, Logger: c.Logger()})
	if err != nil {
		return err
	}
	relay, err := outbox.NewRelay(pool, kafka.NewPublisher(client).To(c.Topic), outbox.RelayConfig{
		Schema: c.Schema, Name: c.Name, AttemptTimeout: lease / 4, Lease: lease, Logger: c.Logger(),
	})
	if err != nil {
		return err
	}

	mux := http.NewServeMux()
	mux.Handle("POST /webhooks/stripe", hook)
	server, err := example.Listen(ctx, mux)
	if err != nil {
		return err
	}
	fmt.Println(server.URL + "/webhooks/stripe")

	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return in.Work(ctx) })
	g.Go(func() error { return relay.Run(ctx) })
	g.Go(func() error { return notifier.Run(ctx) })
	g.Go(func() error { return server.Run(ctx) })
	return g.Wait()
}

// others handles the types that the service has no route for.
func (c partConfig) others() handler.Func {
	if c.AnyType {
		return recordOnly
	}
	return refuseType
}

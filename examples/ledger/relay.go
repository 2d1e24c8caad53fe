package main

import (
	"context"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"github.com/semel-go/semel/examples/internal/example"
	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/transports/kafka"
)

// The events of a killed relay wait for as long as its lease: by default a minute.
// An attempt takes no longer than half of it.
const (
	lease          = 10 * time.Second
	attemptTimeout = lease / 2
)

// relay publishes what is in the outbox, with others, and tells how it goes.
func relay(ctx context.Context, c example.Services) error {
	pool, err := c.Pool(ctx, 5)
	if err != nil {
		return err
	}
	defer pool.Close()
	client, err := kgo.NewClient(append(kafka.WithinAttempt(attemptTimeout), kgo.SeedBrokers(c.Brokers...))...)
	if err != nil {
		return err
	}
	defer client.Close()
	relay, err := outbox.NewRelay(pool, kafka.NewPublisher(client).To(c.Topic), outbox.RelayConfig{
		Schema: c.Schema, Name: c.Name, AttemptTimeout: attemptTimeout, Lease: lease, Logger: c.Logger(),
	})
	if err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return relay.Run(ctx) })
	g.Go(func() error {
		return tell(ctx, os.Stdout, func() news {
			stats := relay.Stats()
			n := news{Failed: stats.Outages, Contended: stats.Stale + stats.LeasesLost}
			for _, kind := range stats.Kinds {
				n.Failed += kind.Failed
			}
			return n
		})
	})
	return g.Wait()
}

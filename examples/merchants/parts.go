package main

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel/examples/internal/broker"
	"github.com/semel-go/semel/examples/internal/example"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/transports/kafka"
)

// The consumers' names, also those of their groups on the broker.
const (
	provisioning = "provisioning"
	searchIndex  = "search-index"
)

// The parts that a process of this program can play, by its only argument.
const (
	relayPart        = "__relay"
	provisioningPart = "__provisioning"
	searchIndexPart  = "__search-index"
)

// partConfig is what each process is told.
type partConfig struct {
	example.Services
	Gate string // all go through it to the brokers
	API  string // where the configuration API is
}

// The relays are quicker to give up than by default, so that there is less to
// wait for: an event whose relay was killed waits for as long as its lease.
const (
	attemptTimeout = time.Second
	lease          = 3 * time.Second
)

// runRelay publishes what is in the outbox. Any number of relays share it.
func runRelay(ctx context.Context, c partConfig) error {
	pool, err := c.Pool(ctx, 5)
	if err != nil {
		return err
	}
	defer pool.Close()
	client, err := kgo.NewClient(append(kafka.WithinAttempt(attemptTimeout),
		kgo.SeedBrokers(c.Brokers...), kgo.Dialer(broker.Through(c.Gate, c.Name)))...)
	if err != nil {
		return err
	}
	defer client.Close()
	relay, err := outbox.NewRelay(pool, kafka.NewPublisher(client).To(c.Topic), outbox.RelayConfig{
		Schema:         c.Schema,
		Name:           c.Name,
		AttemptTimeout: attemptTimeout,
		Lease:          lease,
		Logger:         c.Logger(),
	})
	if err != nil {
		return err
	}
	return relay.Run(ctx)
}

// consume hands what is on the topic to a consumer.
func consume(ctx context.Context, c partConfig, consumer string, config inbox.Config, h handler.Func) error {
	const workers = 4
	pool, err := c.Pool(ctx, workers+2)
	if err != nil {
		return err
	}
	defer pool.Close()
	config.Schema, config.DrainTimeout, config.Logger = c.Schema, 5*time.Second, c.Logger()
	in, err := inbox.New(pool, consumer, handler.Mux(map[string]handler.Func{approvedEvent: h}, nil), config)
	if err != nil {
		return err
	}
	return in.Run(ctx, kafka.NewSource(
		kafka.SourceConfig{Group: c.Group(consumer), Topics: []string{c.Topic}, DrainTimeout: 4 * time.Second, Logger: c.Logger()},
		kgo.SeedBrokers(c.Brokers...), kgo.Dialer(broker.Through(c.Gate, c.Name)), kgo.FetchMaxWait(250*time.Millisecond)))
}

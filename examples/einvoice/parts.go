package main

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"github.com/semel-go/semel/examples/internal/example"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/transports/kafka"
)

// The consumers of the topic, by the names that are theirs for ever.
const (
	adapterName  = "einvoice-adapter"
	cashierName  = "payment"
	erpName      = "erp"
	senderPrefix = "einvoice-sender-" // one for each provider, so that one that is away holds up nobody else
)

func topicConsumers() []string { return []string{adapterName, cashierName, erpName} }

// The parts that a process of this program can play, by its first argument.
const (
	relayPart    = "__relay"
	servicesPart = "__services"
	senderPart   = "__sender"
	providerPart = "__provider"
)

// partConfig is what each process is told.
type partConfig struct {
	example.Services
	Accounts []account
}

// runRelay publishes what is in the outbox.
func runRelay(ctx context.Context, c partConfig) error {
	pool, err := c.Pool(ctx, 5)
	if err != nil {
		return err
	}
	defer pool.Close()
	client, err := kgo.NewClient(append(kafka.WithinAttempt(5*time.Second), kgo.SeedBrokers(c.Brokers...))...)
	if err != nil {
		return err
	}
	defer client.Close()
	relay, err := outbox.NewRelay(pool, kafka.NewPublisher(client).To(c.Topic), outbox.RelayConfig{
		Schema: c.Schema, Name: c.Name, Poll: 200 * time.Millisecond, Logger: c.Logger(),
	})
	if err != nil {
		return err
	}
	return relay.Run(ctx)
}

// runServices runs the consumers of the topic, each with its own claims.
func runServices(ctx context.Context, c partConfig) error {
	pool, err := c.Pool(ctx, 10)
	if err != nil {
		return err
	}
	defer pool.Close()
	a, err := newAdapter(pool, c)
	if err != nil {
		return err
	}
	events := outbox.NewWriter(c.Schema)
	g, ctx := errgroup.WithContext(ctx)
	for consumer, routes := range map[string]map[string]handler.Func{
		adapterName: {orderConfirmed: a.request(order.invoice), orderCancelled: a.request(order.creditNote)},
		cashierName: {orderConfirmed: handler.JSON(cashier{events}.charge)},
		erpName:     {paymentFailed: handler.JSON(erp{events}.cancel)},
	} {
		in, err := inbox.New(pool, consumer, handler.Mux(routes, handler.Skip), inbox.Config{
			Schema: c.Schema, Workers: 2, DrainTimeout: 5 * time.Second, DeadLetterOwner: "erp-team", Logger: c.Logger(),
		})
		if err != nil {
			return errors.Join(err, g.Wait())
		}
		g.Go(func() error {
			return in.Run(ctx, kafka.NewSource(
				kafka.SourceConfig{Group: c.Group(consumer), Topics: []string{c.Topic}, DrainTimeout: 4 * time.Second, Logger: c.Logger()},
				kgo.SeedBrokers(c.Brokers...), kgo.FetchMaxWait(250*time.Millisecond)))
		})
	}
	return g.Wait()
}

// newAdapter returns the adapter, which stores for the senders of other processes.
func newAdapter(pool *pgxpool.Pool, c partConfig) (adapter, error) {
	senders := make(map[string]*inbox.Inbox)
	for _, a := range c.Accounts {
		in, err := newSenderInbox(pool, c, newAPI(a, c.Logger()))
		if err != nil {
			return adapter{}, err
		}
		senders[a.Name] = in
	}
	return adapter{senderOf: func(o order) *inbox.Inbox { return senders[providerOf(o, c.Accounts).Name] }}, nil
}

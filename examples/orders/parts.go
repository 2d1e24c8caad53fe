package main

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel/examples/internal/edifact"
	"github.com/semel-go/semel/examples/internal/example"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/transports/kafka"
)

// The consumers, by the names that are theirs for ever: the intake of interchanges,
// and those who learn of orders, with what each does for one.
const (
	intakeName   = "order-intake"
	erp          = "erp"
	warehouse    = "warehouse"
	notification = "notification"
)

func topicConsumers() []string { return []string{erp, warehouse, notification} }

func doneFor(consumer string) string {
	return map[string]string{
		erp:          `INSERT INTO erp_orders (event, order_id, total) VALUES (@event, @order, @total)`,
		warehouse:    `INSERT INTO pick_lists (event, order_id, lines) VALUES (@event, @order, @lines)`,
		notification: `INSERT INTO notifications (event, order_id, text) VALUES (@event, @order, 'Thank you for order ' || @number::text)`,
	}[consumer]
}

// partConfig is what each process is told.
type partConfig struct {
	example.Services
	Folder  string
	Lenient bool
}

// runIntake takes the interchanges of a folder.
func runIntake(ctx context.Context, c partConfig) error {
	pool, err := c.Pool(ctx, 6)
	if err != nil {
		return err
	}
	defer pool.Close()
	i := intake{parser: edifact.Parser{Lenient: c.Lenient, MaxBytes: maxFile}, events: outbox.NewWriter(c.Schema)}
	in, err := inbox.New(pool, intakeName, i.receive, inbox.Config{
		Schema: c.Schema, ID: interchangeID, MaxPayload: maxFile,
		DrainTimeout: 2 * time.Second, DeadLetterOwner: "edi-desk", Logger: c.Logger(),
	})
	if err != nil {
		return err
	}
	return in.Run(ctx, newFolder(c.Folder, c.Logger()))
}

// A relay that is killed takes what it had in hand with it: how long until the one
// that takes its place may go on. By default it is a minute.
const (
	attemptTimeout = time.Second
	lease          = 3 * time.Second
)

// runRelay publishes what is in the outbox.
func runRelay(ctx context.Context, c partConfig) error {
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
		Schema: c.Schema, Name: c.Name, AttemptTimeout: attemptTimeout, Lease: lease, Poll: 200 * time.Millisecond, Logger: c.Logger(),
	})
	if err != nil {
		return err
	}
	return relay.Run(ctx)
}

// runConsumer is one of those who learn of orders. Each remembers for itself what it
// has done.
func runConsumer(ctx context.Context, c partConfig) error {
	const workers = 4
	pool, err := c.Pool(ctx, workers+2)
	if err != nil {
		return err
	}
	defer pool.Close()
	do := handler.JSON(func(ctx context.Context, tx pgx.Tx, e orderReceived, msg *handler.Message) error {
		_, err := tx.Exec(ctx, doneFor(c.Name), pgx.NamedArgs{
			"event": msg.ID, "order": e.OrderID, "number": e.Number, "total": e.Total, "lines": e.Lines,
		})
		return err
	})
	in, err := inbox.New(pool, c.Name, handler.Mux(map[string]handler.Func{orderReceivedType: do}, nil), inbox.Config{
		Schema: c.Schema, DrainTimeout: 2 * time.Second, Logger: c.Logger(),
	})
	if err != nil {
		return err
	}
	return in.Run(ctx, kafka.NewSource(
		kafka.SourceConfig{Group: c.Group(c.Name), Topics: []string{c.Topic}, DrainTimeout: time.Second, Logger: c.Logger()},
		kgo.SeedBrokers(c.Brokers...),
		// A process that takes a killed one's place under its name has its
		// partitions at once; without a name they wait for the session to end.
		kgo.InstanceID(c.Name),
		kgo.SessionTimeout(6*time.Second), // the least that brokers allow by default
		kgo.HeartbeatInterval(500*time.Millisecond),
		kgo.FetchMaxWait(250*time.Millisecond),
	))
}

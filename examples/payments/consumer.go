package main

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
	"github.com/semel-go/semel/transports/kafka"
)

// Who wants to know of a paid order: the consumers' names, and what each does for
// one. Both hear of the same events; each remembers for itself what it has done.
const (
	shipping  = "shipping"
	invoicing = "invoicing"
)

var noted = map[string]string{
	shipping:  `INSERT INTO shipments (event, order_id) VALUES ($1, $2)`,
	invoicing: `INSERT INTO invoices (event, order_id) VALUES ($1, $2)`,
}

// consume is one of these consumers.
func consume(ctx context.Context, c partConfig) error {
	pool, err := c.Pool(ctx, workers+2)
	if err != nil {
		return err
	}
	defer pool.Close()
	note := handler.JSON(func(ctx context.Context, tx pgx.Tx, e orderPaid, msg *handler.Message) error {
		_, err := tx.Exec(ctx, noted[c.Name], msg.ID, e.OrderID)
		return err
	})
	in, err := inbox.New(pool, c.Name, handler.Mux(map[string]handler.Func{orderPaidType: note}, nil), inbox.Config{
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

package main

import (
	"context"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel/examples/internal/crew"
	"github.com/semel-go/semel/examples/internal/database"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
	"github.com/semel-go/semel/transports/kafka"
)

const (
	// consumerArg, as the only argument, makes this program a consumer.
	consumerArg = "__consumer"

	// consumerName is the logical subscriber, whatever process it runs in.
	consumerName = "payments"

	// workers handle messages at once in each process.
	workers = 4
)

// consumerConfig is what a consumer process is told.
type consumerConfig struct {
	DatabaseURL string
	Schema      string
	Brokers     []string
	Topic       string
	Group       string
	Member      string
	AnyType     bool // types without a route are recorded, not dead
}

// consume is the consumer process.
func consume(stdin io.Reader) error {
	var c consumerConfig
	return crew.Play(stdin, &c, func(ctx context.Context) error { return c.consume(ctx) })
}

// consume is the service, as one would write it.
func (c consumerConfig) consume(ctx context.Context) error {
	logger := slog.New(slog.NewTextHandler(os.Stderr, nil))

	pool, err := database.NewPool(ctx, c.DatabaseURL, c.Schema, c.Member, workers+2)
	if err != nil {
		return err
	}
	defer pool.Close()
	h := newHandler(nil)
	if c.AnyType {
		h = newHandler(recordOnly)
	}
	in, err := inbox.New(pool, consumerName, handler.Chain(h, handler.Log(logger)), inbox.Config{
		Schema:       c.Schema,
		Workers:      workers,
		DrainTimeout: 5 * time.Second,
		Logger:       logger,
	})
	if err != nil {
		return err
	}
	return in.Run(ctx, kafka.NewSource(kafka.SourceConfig{Group: c.Group, Topics: []string{c.Topic}, DrainTimeout: 4 * time.Second, Logger: logger},
		kgo.SeedBrokers(c.Brokers...),
		// A process that takes a killed one's place under its name has its
		// partitions at once; without a name they wait for the session to end.
		kgo.InstanceID(c.Member),
		kgo.SessionTimeout(6*time.Second), // the least that brokers allow by default
		kgo.HeartbeatInterval(500*time.Millisecond),
		kgo.FetchMaxWait(250*time.Millisecond),
	))
}

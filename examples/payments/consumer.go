package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kgo"

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

// consumerConfig is what a consumer process is told, on standard input: a
// connection string is nobody's business in a list of processes.
type consumerConfig struct {
	DatabaseURL string
	Schema      string
	Brokers     []string
	Topic       string
	Group       string
	Member      string
	AnyType     bool // types without a route are recorded, not dead
}

// consume is the consumer process: the service, as one would write it. It runs
// until standard input ends, that is until its parent is done with it, or dead.
func consume(stdin io.Reader) error {
	signal.Ignore(os.Interrupt) // Ctrl-C is for the parent
	var c consumerConfig
	if err := json.NewDecoder(stdin).Decode(&c); err != nil {
		return fmt.Errorf("read what to consume: %w", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, stdin)
		stop()
		time.Sleep(15 * time.Second) // more than a drain takes
		os.Exit(1)
	}()
	logger := slog.New(slog.NewTextHandler(os.Stderr, nil))

	pool, err := openPool(ctx, c.DatabaseURL, c.Schema, c.Member, workers+2)
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
	err = in.Run(ctx, kafka.NewSource(kafka.SourceConfig{Group: c.Group, Topics: []string{c.Topic}, DrainTimeout: 4 * time.Second, Logger: logger},
		kgo.SeedBrokers(c.Brokers...),
		// A process that takes a killed one's place under its name has its
		// partitions at once; without a name they wait for the session to end.
		kgo.InstanceID(c.Member),
		kgo.SessionTimeout(6*time.Second), // the least that brokers allow by default
		kgo.HeartbeatInterval(500*time.Millisecond),
		kgo.FetchMaxWait(250*time.Millisecond),
	))
	if errors.Is(err, context.Canceled) { // told to stop before it had begun
		return nil
	}
	return err
}

// openPool connects to the schema of this run. Unqualified names are the
// service's own tables; Semel's queries name theirs in full.
func openPool(ctx context.Context, url, schemaName, application string, size int32) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("read the connection string: %w", err)
	}
	config.MaxConns = size
	config.ConnConfig.RuntimeParams["search_path"] = schemaName
	config.ConnConfig.RuntimeParams["application_name"] = schemaName + " " + application
	return pgxpool.NewWithConfig(ctx, config)
}

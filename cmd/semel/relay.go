package main

import (
	"context"
	"log/slog"
	"os"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/outbox"
)

// target is a broker to publish to, or an endpoint.
type target struct {
	name      string // for the log
	publisher handler.Publisher
	close     func(ctx context.Context) error
}

// attemptTimeout bounds an attempt to publish, unless a short lease leaves less.
const attemptTimeout = 5 * time.Second

// closeTimeout bounds the end of the connection to the broker.
const closeTimeout = 5 * time.Second

// relay publishes events until its context ends.
func relay(ctx context.Context, c *call) error {
	c.needsDatabase()
	kafka, rabbitmq, http, archive := c.kafkaFlags(), c.rabbitMQFlags(), c.httpFlags(), c.archiveFlags()
	cfg := outbox.RelayConfig{}
	c.flags.StringVar(&cfg.Name, "name", "", "the `name` by which people know this relay (default host and process id)")
	c.flags.IntVar(&cfg.Batch, "batch", 100, "how many events to read and publish at once")
	c.flags.DurationVar(&cfg.Lease, "lease", time.Minute, "how long its shards stay its own after it was killed")
	retention := age(7 * 24 * time.Hour)
	c.flags.Var(&retention, "retention", "purge what was published longer ago than this `age`: 36h, 14d; 0 keeps everything")
	if err := c.parseNoArguments(); err != nil {
		return err
	}
	if cfg.Retention = time.Duration(retention); retention == 0 {
		cfg.Retention = outbox.KeepForever
	}
	if cfg.Lease < time.Second {
		return c.usage("-lease must be at least 1s")
	}
	cfg.Schema, cfg.Archive, cfg.ArchiveRetention = c.schema, archive.store(), time.Duration(archive.retain)
	cfg.Logger = slog.New(slog.NewJSONHandler(c.stderr, nil))
	cfg.AttemptTimeout = min(attemptTimeout, cfg.Lease/2)
	t, err := c.chooseTarget(kafka, rabbitmq, http, &cfg)
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
		defer cancel()
		if err := t.close(ctx); err != nil {
			cfg.Logger.WarnContext(ctx, "relay could not close its connection to the broker", slog.Any("error", err))
		}
	}()
	pool, err := c.openPool(ctx)
	if err != nil {
		return err
	}
	defer pool.Close()
	r, err := outbox.NewRelay(pool, t.publisher, cfg)
	if err != nil {
		return c.usage("%s", err)
	}
	cfg.Logger.InfoContext(ctx, "relay starts", slog.String("broker", t.name), slog.String("schema", c.schema))
	if err := r.Run(ctx); err != nil {
		return err
	}
	attrs := []any{}
	for kind, k := range r.Stats().Kinds {
		attrs = append(attrs, slog.Group(kind, slog.Int64("sent", k.Sent), slog.Int64("failed", k.Failed), slog.Int64("quarantined", k.Quarantined)))
	}
	cfg.Logger.InfoContext(ctx, "relay has ended", slog.Group("events", attrs...))
	return nil
}

// chooseTarget finds out which broker is meant: the one that flags speak of,
// else the only one that the environment names.
func (c *call) chooseTarget(kafka *kafkaFlags, rabbitmq *rabbitMQFlags, http *httpFlags, cfg *outbox.RelayConfig) (*target, error) {
	toKafka, toRabbitMQ, toHTTP := kafka.given(), rabbitmq.given(), http.given()
	if !toKafka && !toRabbitMQ && !toHTTP {
		toKafka, toRabbitMQ = os.Getenv(kafkaVariable) != "", os.Getenv(amqpVariable) != ""
		toHTTP = !toKafka && !toRabbitMQ && os.Getenv(webhookVariable) != "" // others use that name, too
	}
	switch {
	case toKafka && toRabbitMQ, toKafka && toHTTP, toRabbitMQ && toHTTP:
		return nil, c.usage("a relay publishes to one broker: say -kafka, -amqp or -http, without flags of the others")
	case toKafka:
		return c.kafkaTarget(kafka, *cfg)
	case toRabbitMQ:
		return c.rabbitMQTarget(rabbitmq, *cfg)
	case toHTTP:
		return c.httpTarget(http, cfg)
	}
	return nil, c.usage("no broker: give -kafka or set $%s, or give -amqp or set $%s, or give -http or set $%s", kafkaVariable, amqpVariable, webhookVariable)
}

// openPool is connect for a program that runs for long.
func (c *call) openPool(ctx context.Context) (*pgxpool.Pool, error) {
	from, dsn, err := c.dsn()
	if err != nil {
		return nil, err
	}
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, c.unreadable(from)
	}
	prepare(config.ConnConfig)
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, unreachable(config.ConnConfig, from, err)
	}
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		return nil, unreachable(config.ConnConfig, from, err)
	}
	return pool, nil
}

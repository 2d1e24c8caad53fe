// Command ping asks the services that its arguments name (DATABASE_URL,
// KAFKA_BROKERS, AMQP_URL) whether they answer, credentials included, before
// anything is started for a test run that cannot succeed.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel/internal/services"
)

const timeout = 10 * time.Second

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 3*timeout)
	defer cancel()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run pings all variables and reports all that failed.
func run(ctx context.Context, variables []string, stdout io.Writer) error {
	var failures []error
	for _, variable := range variables {
		if err := ping(ctx, variable, os.Getenv(variable)); err != nil {
			failures = append(failures, fmt.Errorf("use the service that %s names: %w; start it, correct %s, or unset it to have one started", variable, err, variable))
			continue
		}
		fmt.Fprintln(stdout, variable, "names a service that answers")
	}
	return errors.Join(failures...)
}

func ping(ctx context.Context, variable, value string) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	switch variable {
	case services.PostgresVariable:
		return pingPostgres(ctx, value)
	case services.KafkaVariable:
		return pingKafka(ctx, value)
	case services.RabbitMQVariable:
		return pingRabbitMQ(value)
	default:
		return errors.New("no such variable")
	}
}

// A text that cannot be parsed is not repeated: it may hold a password.

func pingPostgres(ctx context.Context, value string) error {
	config, err := pgx.ParseConfig(value)
	if err != nil {
		return errors.New("not a connection string")
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	return errors.Join(conn.Ping(ctx), conn.Close(ctx))
}

func pingKafka(ctx context.Context, value string) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(services.SplitBrokers(value)...))
	if err != nil {
		return err
	}
	defer client.Close()
	return client.Ping(ctx)
}

func pingRabbitMQ(value string) error {
	uri, err := amqp.ParseURI(value)
	if err != nil {
		return errors.New("not an AMQP URL")
	}
	conn, err := amqp.DialConfig(value, amqp.Config{Dial: amqp.DefaultDial(timeout)})
	if err != nil {
		return fmt.Errorf("connect to %s: %w", net.JoinHostPort(uri.Host, fmt.Sprint(uri.Port)), err)
	}
	return conn.Close()
}

package main

import (
	"context"
	"crypto/tls"
	"os"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/transports/kafka"
)

// Where the brokers, and how to log in, may be given instead of flags; secrets
// only so.
const (
	kafkaVariable         = "KAFKA_BROKERS"
	kafkaUserVariable     = "KAFKA_USERNAME"
	kafkaPasswordVariable = "KAFKA_PASSWORD" //nolint:gosec // the name of a variable
)

// kafkaFlags say where and how to publish to Kafka.
type kafkaFlags struct {
	brokers, topic, prefix, login string
	tls                           bool
}

func (c *call) kafkaFlags() *kafkaFlags {
	f := &kafkaFlags{}
	c.flags.StringVar(&f.brokers, "kafka", "", "publish to Kafka; the `addresses` of some of its brokers, host:port,... (default $"+kafkaVariable+")")
	c.flags.StringVar(&f.topic, "topic", "", "Kafka: the `topic` of all events (default the aggregate type of each)")
	c.flags.StringVar(&f.prefix, "topic-prefix", "", "Kafka: `text` before the aggregate type in a topic's name")
	c.kafkaSecurityFlags(f)
	return f
}

// kafkaSecurityFlags adds the flags that say how to connect to brokers.
func (c *call) kafkaSecurityFlags(f *kafkaFlags) {
	c.flags.BoolVar(&f.tls, "kafka-tls", false, "Kafka: connect with TLS")
	c.flags.StringVar(&f.login, "kafka-login", "", "Kafka: log in as $"+kafkaUserVariable+" with $"+kafkaPasswordVariable+", by this `mechanism`: plain, scram-sha-256, scram-sha-512")
}

func (f *kafkaFlags) given() bool { return *f != kafkaFlags{} }

func (c *call) kafkaTarget(f *kafkaFlags, cfg outbox.RelayConfig) (*target, error) {
	if f.topic != "" && f.prefix != "" {
		return nil, c.usage("-topic and -topic-prefix exclude each other")
	}
	seeds, opts, err := c.kafkaOptions(f)
	if err != nil {
		return nil, err
	}
	opts = append(opts, kafka.WithinAttempt(cfg.AttemptTimeout)...)
	opts = append(opts, kgo.ClientID("semel-relay"))
	client, err := kgo.NewClient(opts...)
	if err != nil {
		return nil, c.usage("make a Kafka client for %s: %s", strings.Join(seeds, ","), err)
	}
	publisher := kafka.NewPublisher(client).Route(func(msg *handler.Message) string { return f.prefix + outbox.AggregateType(msg) })
	if f.topic != "" {
		publisher = publisher.To(f.topic)
	}
	return &target{name: "kafka " + strings.Join(seeds, ","), publisher: publisher, close: func(context.Context) error {
		client.Close()
		return nil
	}}, nil
}

// kafkaOptions are how to reach the brokers, and their addresses.
func (c *call) kafkaOptions(f *kafkaFlags) (seeds []string, opts []kgo.Opt, err error) {
	brokers := f.brokers
	if brokers == "" {
		brokers = os.Getenv(kafkaVariable)
	}
	seeds = strings.FieldsFunc(brokers, func(r rune) bool { return r == ',' || r == ' ' })
	if len(seeds) == 0 {
		return nil, nil, c.usage("no Kafka broker: give -kafka or set $%s, for example localhost:9092", kafkaVariable)
	}
	opts = []kgo.Opt{kgo.SeedBrokers(seeds...)}
	if f.tls {
		opts = append(opts, kgo.DialTLSConfig(&tls.Config{MinVersion: tls.VersionTLS12}))
	}
	if f.login != "" {
		mechanism, err := c.kafkaLogin(f.login)
		if err != nil {
			return nil, nil, err
		}
		opts = append(opts, kgo.SASL(mechanism))
	}
	return seeds, opts, nil
}

func (c *call) kafkaLogin(mechanism string) (sasl.Mechanism, error) {
	user, password := os.Getenv(kafkaUserVariable), os.Getenv(kafkaPasswordVariable)
	if user == "" || password == "" {
		return nil, c.usage("-kafka-login needs $%s and $%s", kafkaUserVariable, kafkaPasswordVariable)
	}
	switch mechanism {
	case "plain":
		return plain.Auth{User: user, Pass: password}.AsMechanism(), nil
	case "scram-sha-256":
		return scram.Auth{User: user, Pass: password}.AsSha256Mechanism(), nil
	case "scram-sha-512":
		return scram.Auth{User: user, Pass: password}.AsSha512Mechanism(), nil
	}
	return nil, c.usage("-kafka-login %q: it is plain, scram-sha-256 or scram-sha-512", mechanism)
}

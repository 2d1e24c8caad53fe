package main

import (
	"os"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/transports/rabbitmq"
)

// amqpVariable is where the broker may be named instead of -amqp, which others
// on the machine can read.
const amqpVariable = "AMQP_URL"

// rabbitMQFlags say where to publish to RabbitMQ.
type rabbitMQFlags struct{ url, exchange string }

func (c *call) rabbitMQFlags() *rabbitMQFlags {
	f := &rabbitMQFlags{}
	c.flags.StringVar(&f.url, "amqp", "", "publish to RabbitMQ at this `URL`; better set $"+amqpVariable+", it holds a password")
	c.flags.StringVar(&f.exchange, "exchange", "", "RabbitMQ: the `exchange`; an event's type is its routing key (default the default exchange)")
	return f
}

func (f *rabbitMQFlags) given() bool { return *f != rabbitMQFlags{} }

func (c *call) rabbitMQTarget(f *rabbitMQFlags, cfg outbox.RelayConfig) (*target, error) {
	from, url := "-amqp", f.url
	if url == "" {
		from, url = "$"+amqpVariable, os.Getenv(amqpVariable)
	}
	if url == "" {
		return nil, c.usage("no RabbitMQ: give -amqp or set $%s, for example amqp://user@localhost:5672/", amqpVariable)
	}
	if len(f.exchange) > 255 {
		return nil, c.usage("-exchange has %d bytes, AMQP allows 255", len(f.exchange))
	}
	uri, err := amqp.ParseURI(url)
	if err != nil { // the error holds the URL, and with it the password
		return nil, c.usage("read the URL in %s: it is not like amqp://user:password@host:5672/vhost", from)
	}
	publisher := rabbitmq.NewPublisher(rabbitmq.PublisherConfig{URL: url, Exchange: f.exchange, Window: 1000, Logger: cfg.Logger})
	return &target{name: "rabbitmq " + uri.Host, publisher: publisher, close: publisher.Close}, nil
}

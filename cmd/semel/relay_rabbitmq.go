package main

import (
	"cmp"
	"os"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/transports/rabbitmq"
)

// amqpVariable is where the broker may be named instead of -amqp, which others
// on the machine can read.
const amqpVariable = "AMQP_URL"

// rabbitMQFlags say where to publish to RabbitMQ.
type rabbitMQFlags struct {
	url, exchange, prefix, key string
	byType                     bool
}

// routingKeys are what an event's routing key may be.
var routingKeys = map[string]func(*handler.Message) string{
	"type":           func(msg *handler.Message) string { return msg.Type },
	"aggregate-type": outbox.AggregateType,
	"aggregate-id":   func(msg *handler.Message) string { return string(msg.Key) },
}

func (c *call) rabbitMQFlags() *rabbitMQFlags {
	f := &rabbitMQFlags{}
	c.flags.StringVar(&f.url, "amqp", "", "publish to RabbitMQ at this `URL`; better set $"+amqpVariable+", it holds a password")
	c.flags.StringVar(&f.exchange, "exchange", "", "RabbitMQ: the `exchange` of all events (default the default exchange)")
	c.flags.BoolVar(&f.byType, "exchange-by-type", false, "RabbitMQ: publish to the exchange that has the name of an event's aggregate type")
	c.flags.StringVar(&f.prefix, "exchange-prefix", "", "RabbitMQ: as -exchange-by-type, with this `text` before the aggregate type")
	c.flags.StringVar(&f.key, "routing-key", "", "RabbitMQ: what of an event is its routing `key`: type, aggregate-type or aggregate-id (default type)")
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
	byType := f.byType || f.prefix != ""
	key, known := routingKeys[cmp.Or(f.key, "type")]
	switch {
	case len(f.exchange) > 255:
		return nil, c.usage("-exchange has %d bytes, AMQP allows 255", len(f.exchange))
	case f.exchange != "" && byType:
		return nil, c.usage("-exchange and -exchange-by-type (or -exchange-prefix) exclude each other")
	case !known:
		return nil, c.usage("-routing-key %q: it is type, aggregate-type or aggregate-id", f.key)
	}
	uri, err := amqp.ParseURI(url)
	if err != nil { // the error holds the URL, and with it the password
		return nil, c.usage("read the URL in %s: it is not like amqp://user:password@host:5672/vhost", from)
	}
	config := rabbitmq.PublisherConfig{URL: url, Exchange: f.exchange, RoutingKey: key, Window: 1000, Logger: cfg.Logger}
	if byType {
		config.ExchangeOf = func(msg *handler.Message) string { return f.prefix + outbox.AggregateType(msg) }
	}
	publisher := rabbitmq.NewPublisher(config)
	return &target{name: "rabbitmq " + uri.Host, publisher: publisher, close: publisher.Close}, nil
}

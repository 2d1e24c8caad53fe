package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/internal/chaos/wire"
	"github.com/semel-go/semel/internal/services"
	"github.com/semel-go/semel/transports/kafka"
	"github.com/semel-go/semel/transports/rabbitmq"
)

// publisherTo returns the publisher to a broker, with the trap on both its sides.
func publisherTo(setup wire.Setup, trap *trap) (p handler.Publisher, end func(), err error) {
	switch setup.Broker {
	case wire.Kafka:
		client, err := kgo.NewClient(
			kgo.SeedBrokers(services.SplitBrokers(os.Getenv(services.KafkaVariable))...),
			kgo.WithHooks(written{trap}),
		)
		if err != nil {
			return nil, nil, err
		}
		return orderedPublisher{tapped{kafka.NewPublisher(client).To(setup.Topic), trap}}, client.Close, nil
	case wire.RabbitMQ:
		p := rabbitmq.NewPublisher(rabbitmq.PublisherConfig{
			URL:        os.Getenv(services.RabbitMQVariable),
			RoutingKey: func(*handler.Message) string { return setup.Topic },
			Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
				conn, err := new(net.Dialer).DialContext(ctx, network, addr)
				return writtenConn{conn, trap}, err
			},
		})
		return tapped{p, trap}, func() {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			defer cancel()
			_ = p.Close(ctx)
		}, nil
	default:
		return nil, nil, fmt.Errorf("unknown broker %q", setup.Broker)
	}
}

// tapped is a publisher that reports what it is given, and what it answers.
type tapped struct {
	handler.Publisher
	trap *trap
}

// Publish implements [handler.Publisher].
func (p tapped) Publish(ctx context.Context, msgs []*handler.Message) []error {
	ids := make([]string, len(msgs))
	for i, m := range msgs {
		ids[i] = m.ID
	}
	p.trap.report(wire.Sending, ids)
	errs := p.Publisher.Publish(ctx, msgs)
	var doubtful []string
	for i, err := range errs {
		if err != nil {
			doubtful = append(doubtful, ids[i])
		}
	}
	if len(doubtful) > 0 {
		p.trap.report(wire.Doubtful, doubtful)
	}
	if len(doubtful) < len(ids) {
		p.trap.pass(wire.AfterConfirm)
	}
	return errs
}

// orderedPublisher is one that keeps the order of a key.
type orderedPublisher struct{ tapped }

// KeepsOrder implements [handler.OrderedPublisher].
func (orderedPublisher) KeepsOrder() bool { return true }

// written sees the requests to Kafka.
type written struct{ trap *trap }

// OnBrokerWrite implements [kgo.HookBrokerWrite].
func (w written) OnBrokerWrite(_ kgo.BrokerMetadata, key int16, _ int, _, _ time.Duration, err error) {
	if err == nil && kmsg.Key(key) == kmsg.Produce {
		w.trap.pass(wire.AfterSend)
	}
}

// writtenConn sees the frames to RabbitMQ.
type writtenConn struct {
	net.Conn
	trap *trap
}

// Write implements [net.Conn].
func (c writtenConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if err == nil && bytes.Contains(b, []byte{0, 60, 0, 40}) { // basic.publish
		c.trap.pass(wire.AfterSend)
	}
	return n, err
}

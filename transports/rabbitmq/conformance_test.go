package rabbitmq_test

import (
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/semel-go/semel/transports/rabbitmq"
	"github.com/semel-go/semel/transports/transporttest"
)

func TestConformance(t *testing.T) {
	t.Parallel()

	shared := transporttest.Features{
		Ordered: true, RepeatedHeaders: true, NilHeaders: true, BinaryHeaders: true,
		Redelivered: true, Pause: true, Abort: true, Revoke: true,
	}
	oneActive := shared
	oneActive.KeepsOrder, oneActive.OneActive = true, true

	t.Run("Shared", func(t *testing.T) {
		t.Parallel()
		transporttest.Run(t, newTransport(nil, func(*rabbitmq.SourceConfig) {}), shared)
	})
	for _, tt := range orders() {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			transporttest.Run(t, newTransport(tt.arguments, tt.config), oneActive)
		})
	}
}

// order is a way to consume a queue in order.
type order struct {
	name      string
	arguments amqp.Table
	config    func(*rabbitmq.SourceConfig)
}

func orders() []order {
	single := func(c *rabbitmq.SourceConfig) { c.SingleActiveConsumer = true }
	return []order{
		{name: "ClassicExclusive", config: func(c *rabbitmq.SourceConfig) { c.Exclusive = true }},
		{name: "ClassicSingleActive", config: single, arguments: amqp.Table{"x-single-active-consumer": true}},
		{name: "QuorumSingleActive", config: single, arguments: amqp.Table{"x-queue-type": "quorum", "x-single-active-consumer": true}},
	}
}

func newTransport(arguments amqp.Table, change func(*rabbitmq.SourceConfig)) func(t *testing.T) transporttest.Transport {
	return func(t *testing.T) transporttest.Transport {
		t.Helper()
		b := setup(t)
		b.redeclare(t, false, false, arguments)
		return transporttest.Transport{
			Publisher: b.newPublisher(t, rabbitmq.PublisherConfig{}),
			NewMember: func(testing.TB) transporttest.Member {
				l := &line{}
				config := b.sourceConfig()
				config.Dial = l.dial
				change(&config)
				return transporttest.Member{
					Source: rabbitmq.NewSource(config),
					Abort:  func() { l.cut(true) },
					Revoke: func() { l.cut(false) },
				}
			},
		}
	}
}

package rabbitmq_test

import (
	"testing"

	"github.com/semel-go/semel/transports/rabbitmq"
	"github.com/semel-go/semel/transports/transporttest"
)

func TestConformance(t *testing.T) {
	t.Parallel()

	transporttest.Run(t, newTransport, transporttest.Features{
		Ordered: true, RepeatedHeaders: true, NilHeaders: true, BinaryHeaders: true,
		Redelivered: true, Pause: true, Abort: true, Revoke: true,
	})
}

func newTransport(t *testing.T) transporttest.Transport {
	b := setup(t)
	return transporttest.Transport{
		Publisher: b.newPublisher(t, rabbitmq.PublisherConfig{}),
		NewMember: func(testing.TB) transporttest.Member {
			l := &line{}
			config := b.sourceConfig()
			config.Dial = l.dial
			return transporttest.Member{
				Source: rabbitmq.NewSource(config),
				Abort:  func() { l.cut(true) },
				Revoke: func() { l.cut(false) },
			}
		},
	}
}

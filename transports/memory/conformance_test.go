package memory_test

import (
	"testing"

	"github.com/semel-go/semel/transports/memory"
	"github.com/semel-go/semel/transports/transporttest"
)

func TestConformance(t *testing.T) {
	t.Parallel()

	transporttest.Run(t, newTransport, transporttest.Features{
		Ordered: true, KeepsOrder: true, HeaderOrder: true, RepeatedHeaders: true, NilHeaders: true, BinaryHeaders: true, Tombstones: true,
		Positions: true, BrokerTime: true, Redelivered: true, Pause: true, Abort: true, Revoke: true,
	})
}

func newTransport(*testing.T) transporttest.Transport {
	queue := memory.NewQueue("payments")
	return transporttest.Transport{
		Publisher: queue,
		NewMember: func(testing.TB) transporttest.Member {
			source := memory.NewSource(queue)
			return transporttest.Member{Source: source, Abort: source.Abort, Revoke: source.Abort}
		},
	}
}

package kafka_test

import (
	"context"
	"crypto/rand"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/semel-go/semel/internal/services"
	"github.com/semel-go/semel/transports/kafka"
	"github.com/semel-go/semel/transports/transporttest"
)

func TestConformance(t *testing.T) {
	t.Parallel()

	suite := func(t *testing.T, newBundle func(*testing.T) *testBundle) {
		transporttest.Run(t, func(t *testing.T) transporttest.Transport {
			t.Helper()
			b := newBundle(t)
			return transporttest.Transport{
				Publisher: kafka.NewPublisher(b.producer(t)).To(b.topic),
				NewMember: b.member,
			}
		}, transporttest.Features{
			Ordered: true, KeepsOrder: true, HeaderOrder: true, RepeatedHeaders: true, NilHeaders: true, BinaryHeaders: true, Tombstones: true,
			Positions: true, BrokerTime: true, Redelivered: true, Pause: true, Abort: true, Revoke: true,
		})
	}
	t.Run("Kfake", func(t *testing.T) {
		t.Parallel()
		suite(t, func(t *testing.T) *testBundle { return setup(t, 4) })
	})
	t.Run("Kafka", func(t *testing.T) {
		t.Parallel()
		brokers := services.Kafka(t)
		suite(t, func(t *testing.T) *testBundle { return setupOn(t, nil, brokers, 4) })
	})
}

// member makes a member whose process can die and that the group can expel.
func (b *testBundle) member(t testing.TB) transporttest.Member {
	var n network
	name := rand.Text()
	return transporttest.Member{
		Source: b.source(n.opt(), kgo.ClientID(name)),
		Abort:  n.cut,
		Revoke: func() { b.expel(t, name) },
	}
}

// expel makes the group forget the member with this client id.
func (b *testBundle) expel(t testing.TB, clientID string) {
	t.Helper()
	described, err := b.admin.DescribeGroups(t.Context(), b.group)
	require.NoError(t, err)
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Group = b.group
	for _, m := range described[b.group].Members {
		if m.ClientID == clientID {
			leaver := kmsg.NewLeaveGroupRequestMember()
			leaver.MemberID = m.MemberID
			req.Members = append(req.Members, leaver)
		}
	}
	require.NotEmpty(t, req.Members, "the member is not in the group")
	_, err = req.RequestWith(context.WithoutCancel(t.Context()), b.client)
	require.NoError(t, err)
}

package transporttest

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
)

// clockSkew is how far the broker's clock may be from ours.
const clockSkew = time.Minute

var errOnceMore = errors.New("once more")

func originRules() []rule {
	return []rule{
		{
			name:     "OriginIsNamed",
			sentence: "A delivery names its transport and the topic it came from.",
			check:    checkOriginIsNamed,
		},
		{
			name:     "Positions",
			sentence: "A message's position is its own, and the same when it comes again.",
			needs:    "Positions",
			check:    checkPositions,
		},
		{
			name:     "BrokerTime",
			sentence: "A delivery carries the time at which the broker took the message.",
			needs:    "BrokerTime",
			check:    checkBrokerTime,
		},
		{
			name:     "Redelivered",
			sentence: "A delivery says whether its message was delivered before.",
			needs:    "Redelivered",
			check:    checkRedelivered,
		},
	}
}

func checkOriginIsNamed(t *testing.T, b *bundle) {
	b.publish(t, &handler.Message{ID: "evt_1"})

	origin := b.join(t, SinkConfig{}).collect(t, 1)[0].Origin

	require.NotEmpty(t, origin.Transport)
	require.NotEmpty(t, origin.Topic)
}

func checkPositions(t *testing.T, b *bundle) {
	const n = 6
	for range n { // one id for all: a position tells copies apart
		b.publish(t, &handler.Message{ID: "evt_1"})
	}
	m := b.join(t, SinkConfig{})
	seen := map[string]bool{}
	for range n {
		d := m.next(t)
		require.NotEmpty(t, d.Message.Origin.Position)
		require.NotContains(t, seen, d.Message.Origin.Position)
		seen[d.Message.Origin.Position] = true
	}
	m.sink.ReturnAll(errOnceMore)

	for range n {
		d := m.next(t)
		require.Contains(t, seen, d.Message.Origin.Position)
		d.Settled()
	}
}

func checkBrokerTime(t *testing.T, b *bundle) {
	before := time.Now()
	b.publish(t, &handler.Message{ID: "evt_1", OccurredAt: before.Add(-24 * time.Hour)})

	origin := b.join(t, SinkConfig{}).collect(t, 1)[0].Origin

	require.WithinRange(t, origin.Time, before.Add(-clockSkew), time.Now().Add(clockSkew))
}

func checkRedelivered(t *testing.T, b *bundle) {
	b.publish(t, &handler.Message{ID: "evt_1"})
	m := b.join(t, SinkConfig{})

	first := m.next(t)
	require.False(t, first.Message.Origin.Redelivered, "the first delivery")
	first.Returned(errOnceMore)
	second := m.next(t)
	require.True(t, second.Message.Origin.Redelivered, "the second delivery")
	second.Settled()
}

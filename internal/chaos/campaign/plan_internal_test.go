package campaign

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/internal/chaos/wire"
)

func TestPlan_SpreadsKillsEvenly(t *testing.T) {
	t.Parallel()

	for _, kills := range []int{1, 20, 21, 42, 50, 300} {
		specs := Config{Kills: kills}.withDefaults().plan()
		total := 0
		for _, s := range specs {
			total += s.kills
			require.InDelta(t, specs[0].kills, s.kills, 1)
		}
		require.Len(t, specs, len(wire.Points())*len(wire.Brokers()))
		require.Equal(t, max(kills, len(specs)), total)
	}
}

// Two processes on each broker, an order that is counted on each, and never an
// order that is not promised.
func TestPlan_Crews(t *testing.T) {
	t.Parallel()

	two, ordered := map[wire.Broker]bool{}, map[wire.Broker]bool{}
	for _, s := range (Config{Kills: 21}).withDefaults().plan() {
		two[s.broker] = two[s.broker] || s.crew.size == 2
		ordered[s.broker] = ordered[s.broker] || s.crew.ordered
		if s.crew.ordered && s.crew.size == 2 {
			require.Equal(t, s.broker == wire.RabbitMQ, s.crew.single, "%s on %s", s.point, s.broker)
		}
	}
	for _, broker := range wire.Brokers() {
		require.True(t, two[broker], broker)
		require.True(t, ordered[broker], broker)
	}
}

// The order past failures is promised, and so counted, at all points of the inbox.
// RabbitMQ promises it where one consumer at a time is active.
func TestPlan_OfInbox(t *testing.T) {
	t.Parallel()

	ahead, n := 0, 0
	for _, s := range (Config{Kills: 1}).withDefaults().plan() {
		if !s.ofInbox() {
			require.Zero(t, s.workAhead())
			continue
		}
		n++
		require.True(t, s.crew.ordered, "%s on %s", s.point, s.broker)
		require.Equal(t, s.broker == wire.RabbitMQ, s.crew.single)
		ahead = max(ahead, s.workAhead())
	}
	require.Equal(t, 6*len(wire.Brokers()), n)
	require.Equal(t, wire.Crowd, ahead)
}

func TestSummary_Err(t *testing.T) {
	t.Parallel()

	well := Result{spec: spec{broker: wire.Kafka, point: wire.AfterAck, kills: 2}, Kills: 2}
	require.NoError(t, Summary{[]Result{well, well}}.Err())

	tests := []struct {
		name   string
		change func(r *Result)
		want   string
	}{
		{name: "Lost", change: func(r *Result) { r.Lost = 1 }, want: "after-ack on kafka: lost 1, doubled 0, reordered 0"},
		{name: "Doubled", change: func(r *Result) { r.Doubled = 1 }, want: "after-ack on kafka: lost 0, doubled 1, reordered 0"},
		{name: "Reordered", change: func(r *Result) { r.Reordered = 1 }, want: "after-ack on kafka: lost 0, doubled 0, reordered 1"},
		{name: "NotReached", change: func(r *Result) { r.Kills = 1 }, want: "after-ack on kafka: 1 kills of 2"},
		{name: "Failed", change: func(r *Result) { r.Err = errors.New("why") }, want: "after-ack on kafka: why"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			bad := well
			tt.change(&bad)

			require.EqualError(t, Summary{[]Result{well, bad}}.Err(), tt.want)
		})
	}
}

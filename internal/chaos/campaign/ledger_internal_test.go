package campaign

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/internal/chaos/wire"
	"github.com/semel-go/semel/outbox"
)

func TestLedger_Judge(t *testing.T) {
	t.Parallel()

	l := newLedger()
	l.commits([]outbox.Event{{ID: "a1"}, {ID: "a2"}, {ID: "a3"}, {ID: "b1"}, {ID: "b2"}})
	for _, e := range []seenEvent{
		{"a1", "a", 1},
		{"b1", "b", 1},
		{"a1", "a", 1}, // again, after a kill
		{"a3", "a", 3},
		{"a2", "a", 2}, // late
		{"b1", "b", 1}, // again, and nobody was killed
		{"a1", "a", 1},
		{"x", "x", 1},
	} {
		l.sees(e)
	}

	total, points, notes := l.judge(map[string]wire.Point{"a1": wire.AfterSend, "b2": wire.AfterSend, "a2": ""})

	require.Equal(t, RelayCounts{Events: 5, Repeats: 3, Stray: 1, Lost: 1, Reordered: 1, Phantom: 1}, total)
	require.Equal(t, map[wire.Point]*RelayCounts{wire.AfterSend: {Events: 2, Repeats: 2, Lost: 1}}, points)
	require.Len(t, notes, 4)
}

func TestFleetResult(t *testing.T) {
	t.Parallel()

	config := FleetConfig{Points: []wire.Point{wire.AfterSend}, Kills: 2}.withDefaults()
	well := FleetResult{config: config, Total: RelayCounts{Events: 9, Repeats: 3}, Kills: map[wire.Point]int{wire.AfterSend: 2}}
	require.NoError(t, well.Failure())

	for _, counts := range []RelayCounts{{Lost: 1}, {Reordered: 1}, {Phantom: 1}, {Stray: 1}} {
		bad := well
		bad.Total = counts
		require.Error(t, bad.Failure())
	}
	rare := well
	rare.Kills = map[wire.Point]int{wire.AfterSend: 1}
	require.ErrorContains(t, rare.Failure(), "1 kills of 2")
}

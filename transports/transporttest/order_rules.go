package transporttest

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
)

func orderRules() []rule {
	return []rule{
		{
			name:     "OrderIsDeclared",
			sentence: "A source that keeps order declares Features.KeepsOrder, and one that declares it does.",
			check: func(t *testing.T, b *bundle) {
				ordered, can := b.NewMember(t).Source.(handler.OrderedSource)
				require.Equal(t, b.features.KeepsOrder, can && ordered.KeepsOrder() == nil)
			},
		},
		{
			name:     "ReturnedKeepsOrder",
			sentence: "Messages of one key that are returned come again in their order, once none of that key is out any more.",
			needs:    "KeepsOrder",
			check:    checkReturnedKeepsOrder,
		},
		{
			name:     "PauseKeepsOrder",
			sentence: "Messages of one key that are returned while their source is paused come again in their order.",
			needs:    "KeepsOrder Pause",
			check:    checkPauseKeepsOrder,
		},
		{
			name:     "StopKeepsOrder",
			sentence: "Messages of one key that are returned while their source stops come to the next one in their order.",
			needs:    "KeepsOrder",
			check:    checkStopKeepsOrder,
		},
		{
			name:     "DeathKeepsOrder",
			sentence: "Messages of one key that were out when their source died come to the next one in their order.",
			needs:    "KeepsOrder Abort",
			check:    checkDeathKeepsOrder,
		},
		{
			name:     "TakeoverKeepsOrder",
			sentence: "The next member is given nothing while anything is out at the one before, and then all that it left, in order.",
			needs:    "KeepsOrder OneActive",
			check:    checkTakeoverKeepsOrder,
		},
	}
}

// lineLength is how many messages of one key the rules of order work with.
const lineLength = 10

func checkReturnedKeepsOrder(t *testing.T, b *bundle) {
	line := b.publishLine(t, 1, lineLength)
	m := b.join(t, SinkConfig{})
	out := m.takeLine(t, line)
	out[0].Settled()
	out[lineLength-1].Returned(errOnceMore)
	b.publishLine(t, lineLength+1, 2*lineLength)
	m.sink.RequireQuiet(t)
	returnScrambled(out[1 : lineLength-1])

	m.requireLine(t, lineIDs(2, 2*lineLength))
	m.stop(t)
}

func checkPauseKeepsOrder(t *testing.T, b *bundle) {
	line := b.publishLine(t, 1, lineLength)
	m := b.join(t, SinkConfig{})
	out := m.takeLine(t, line)
	pauser(t, m).Pause()
	out[0].Settled()
	returnScrambled(out[1:])
	m.sink.RequireQuiet(t)
	b.publishLine(t, lineLength+1, 2*lineLength)
	pauser(t, m).Resume()

	m.requireLine(t, lineIDs(2, 2*lineLength))
	m.stop(t)
}

func checkStopKeepsOrder(t *testing.T, b *bundle) {
	line := b.publishLine(t, 1, lineLength)
	m := b.join(t, SinkConfig{})
	out := m.takeLine(t, line)
	m.cancel()
	out[0].Settled()
	returnScrambled(out[1:])
	m.stop(t)
	b.publishLine(t, lineLength+1, 2*lineLength)

	next := b.join(t, SinkConfig{})
	next.requireLine(t, lineIDs(2, 2*lineLength))
	next.stop(t)
}

func checkDeathKeepsOrder(t *testing.T, b *bundle) {
	line := b.publishLine(t, 1, lineLength)
	m := b.join(t, SinkConfig{})
	m.takeLine(t, line)
	b.publishLine(t, lineLength+1, 2*lineLength)
	m.abort(t)

	next := b.join(t, SinkConfig{})
	next.requireLine(t, lineIDs(1, 2*lineLength))
	next.stop(t)
}

func checkTakeoverKeepsOrder(t *testing.T, b *bundle) {
	line := b.publishLine(t, 1, lineLength)
	one := b.join(t, SinkConfig{Limit: lineLength})
	out := one.takeLine(t, line)
	two := b.join(t, SinkConfig{})
	b.publishLine(t, lineLength+1, 2*lineLength)
	two.sink.RequireQuiet(t)

	one.cancel()
	out[0].Settled()
	two.sink.RequireQuiet(t)
	b.publishLine(t, 2*lineLength+1, 3*lineLength)
	two.sink.RequireQuiet(t)
	returnScrambled(out[1:])
	one.stop(t)
	two.requireLine(t, lineIDs(2, 3*lineLength))
	two.stop(t)
}

// publishLine publishes the messages with these numbers, all of one key.
func (b *bundle) publishLine(t *testing.T, first, last int) (line []string) {
	t.Helper()
	line = lineIDs(first, last)
	for _, id := range line {
		b.publish(t, &handler.Message{ID: id, Key: []byte("one key")})
	}
	return line
}

func lineIDs(first, last int) (line []string) {
	for i := first; i <= last; i++ {
		line = append(line, fmt.Sprintf("evt_%d", i))
	}
	return line
}

// takeLine takes deliveries, requires that they are these and leaves them out.
func (m *member) takeLine(t *testing.T, line []string) (out []*handler.Delivery) {
	t.Helper()
	for _, id := range line {
		d := m.next(t)
		require.Equal(t, id, d.Message.ID, "of %q", line)
		out = append(out, d)
	}
	return out
}

// requireLine takes deliveries, requires that they are these and settles them.
func (m *member) requireLine(t *testing.T, line []string) {
	t.Helper()
	for _, d := range m.takeLine(t, line) {
		d.Settled()
	}
}

// returnScrambled returns out in no order: the odd ones from the end, then the
// even ones from the start.
func returnScrambled(out []*handler.Delivery) {
	for i := range out {
		if at := len(out) - 1 - i; at%2 == 1 {
			out[at].Returned(errOnceMore)
		}
	}
	for i := 0; i < len(out); i += 2 {
		out[i].Returned(errOnceMore)
	}
}

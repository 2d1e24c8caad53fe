package campaign

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBooks_QuietWhenAllIsSettled(t *testing.T) {
	t.Parallel()

	b, p := newBooks(), &process{held: -1}
	require.True(t, b.quiet())
	n := b.publish()
	require.False(t, b.quiet(), "nobody has it yet")
	b.delivered(p, n)
	b.settled(n)
	require.False(t, b.quiet(), "not acknowledged")
	b.ended(p, n)
	require.True(t, b.quiet())
	require.Zero(t, b.redelivered)
}

func TestBooks_ReturnedMustComeAgain(t *testing.T) {
	t.Parallel()

	b, p := newBooks(), &process{held: -1}
	n := b.publish()
	b.delivered(p, n)
	b.ended(p, n)
	require.False(t, b.quiet())
	b.delivered(p, n)
	b.settled(n)
	b.ended(p, n)
	require.True(t, b.quiet())
	require.Equal(t, 1, b.redelivered)
}

// What was held at before-ack is settled already, yet it must come again.
func TestBooks_HeldBeforeItsAckMustComeAgain(t *testing.T) {
	t.Parallel()

	b, killed, next := newBooks(), &process{}, &process{held: -1}
	held, other := b.publish(), b.publish()
	killed.held = held
	for _, n := range []int{held, other} {
		b.delivered(killed, n)
		b.settled(n)
	}

	b.died(killed)

	require.Equal(t, 2, b.suspects)
	require.Zero(t, b.inFlight())
	require.False(t, b.quiet())
	b.delivered(next, held)
	b.settled(held)
	b.ended(next, held)
	require.True(t, b.quiet())
}

func TestBooks_HeldAfterItsAckNeedNot(t *testing.T) {
	t.Parallel()

	b, killed := newBooks(), &process{}
	killed.held = b.publish()
	b.delivered(killed, killed.held)
	b.settled(killed.held)
	b.ended(killed, killed.held)

	b.died(killed)

	require.True(t, b.quiet())
	require.Zero(t, b.suspects)
}

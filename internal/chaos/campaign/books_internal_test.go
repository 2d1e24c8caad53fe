package campaign

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBooks_QuietWhenAllIsSettled(t *testing.T) {
	t.Parallel()

	b, p := newBooks(), &process{}
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

	b, p := newBooks(), &process{}
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

	b, killed, next := newBooks(), &process{}, &process{}
	held, other := b.publish(), b.publish()
	for _, n := range []int{held, other} {
		b.delivered(killed, n)
		b.settled(n)
	}

	b.held(killed, held)
	b.died(killed)

	require.Equal(t, 2, b.suspects)
	require.Zero(t, b.inFlight())
	require.False(t, b.quiet())
	b.delivered(next, held)
	b.settled(held)
	b.ended(next, held)
	require.True(t, b.quiet())
}

// A broker is sometimes faster than the news that the child is dead.
func TestBooks_ComesAgainBeforeTheDeathIsKnown(t *testing.T) {
	t.Parallel()

	b, killed, next := newBooks(), &process{}, &process{}
	n := b.publish()
	b.delivered(killed, n)
	b.held(killed, n)
	b.delivered(next, n)
	b.settled(n)
	b.ended(next, n)
	require.False(t, b.quiet(), "the killed one is still there")

	b.died(killed)

	require.True(t, b.quiet())
}

// What a worker had taken from the inbox is taken again.
func TestBooks_LeasedIsRedelivered(t *testing.T) {
	t.Parallel()

	b, killed := newBooks(), &process{}
	b.leased[killed] = 500
	require.True(t, b.quiet(), "the inbox tells, not the books")

	b.died(killed)

	require.Equal(t, 500, b.suspects)
	require.Equal(t, 500, b.redelivered)
	require.Empty(t, b.leased)
}

// A worker of the inbox may hold a message, with its delivery not yet acknowledged.
func TestBooks_AckedWhileHeldNeedNot(t *testing.T) {
	t.Parallel()

	b, killed := newBooks(), &process{}
	n := b.publish()
	b.delivered(killed, n)
	b.settled(n)
	b.held(killed, n)

	b.acked(killed, n)
	b.died(killed)

	require.True(t, b.quiet())
}

func TestBooks_HeldAfterItsAckNeedNot(t *testing.T) {
	t.Parallel()

	b, killed := newBooks(), &process{}
	n := b.publish()
	b.delivered(killed, n)
	b.settled(n)
	b.ended(killed, n)

	b.held(killed, n)
	b.died(killed)

	require.True(t, b.quiet())
	require.Zero(t, b.suspects)
}

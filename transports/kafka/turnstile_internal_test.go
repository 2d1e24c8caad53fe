package kafka

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Records that were polled before a rebalance must be handed over before the
// next assignment is made, or they would count as its first.
func TestTurnstile_WaitsForHandOver(t *testing.T) {
	t.Parallel()

	var ts turnstile
	ts.wait() // nobody polls yet

	polling, end := ts.begin(t.Context())
	waited := make(chan struct{})
	go func() {
		defer close(waited)
		ts.wait()
	}()
	<-polling.Done() // the poll is interrupted: it may have nothing to return for long
	select {
	case <-waited:
		require.Fail(t, "the rebalance went on before the hand-over")
	default:
	}
	end()
	<-waited

	ts.wait() // between two polls
	ts.close()
	ts.wait() // after the last
}

package inbox

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// While a consumer catches up, small messages of other partitions took each
// byte that came free, and a large one was not let in until they were through.
func TestBudget_NobodyPassesOneThatWaits(t *testing.T) {
	t.Parallel()

	b := newBudget(100, 10)
	require.NoError(t, b.take(t.Context(), nil, 6))
	large := make(chan error, 1)
	go func() { large <- b.take(t.Context(), nil, 8) }()
	require.Eventually(t, func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.room != nil
	}, 10*time.Second, time.Millisecond, "the large one waits")

	gone, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, b.take(gone, nil, 2), context.Canceled, "there is room for it, but it is not its turn")
	drains := make(chan struct{})
	close(drains)
	require.ErrorIs(t, b.take(t.Context(), drains, 2), ErrDraining)

	b.give(6)
	require.NoError(t, <-large)
	require.NoError(t, b.take(t.Context(), nil, 2))
}

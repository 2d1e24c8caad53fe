package systemtest_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
)

// copies is how many duplicates each way brings: enough that a line for each,
// or for each hundredth, is seen.
const (
	distinct = 300
	copies   = 11
)

// Case D17: each duplicate wrote an error to the log, and people switched the
// alarm off (NServiceBus.Persistence.Sql#1496). Through a source.
func TestDuplicates_AreQuiet(t *testing.T) {
	eachBroker(t, func(t *testing.T, kind string) {
		b := setup(t, kind, place{partitions: 3})
		sent := messages(0, distinct)
		for range copies {
			send(t, b.broker, sent...)
		}

		r := b.start(t, effect, inbox.Config{})
		r.awaitSettled(t, distinct*copies)
		r.finish(t)

		require.EqualValues(t, distinct, r.in.Stats().Processed)
		require.EqualValues(t, distinct*(copies-1), r.in.Stats().Duplicates)
		b.requireOneEffectEach(t, ids(sent))
		require.Empty(t, b.log.String(), "logged at Warn or above")
		require.Zero(t, b.broker.left(t))
	})
}

// Case D17, in anybody's own loop, with copies that meet each other.
func TestDuplicates_AreQuietInProcess(t *testing.T) {
	b := setupDatabase(t)
	in := b.inbox(t, b.Pool, effect, inbox.Config{})
	sent := messages(0, distinct)
	var callers sync.WaitGroup
	faults := make(chan error, distinct*copies)
	for range copies {
		callers.Go(func() {
			for _, msg := range sent {
				outcome, err := in.Process(t.Context(), msg)
				if err != nil || (outcome != handler.Processed && outcome != handler.Duplicate) {
					faults <- err
				}
			}
		})
	}
	callers.Wait()

	require.Empty(t, faults)
	require.EqualValues(t, distinct*(copies-1), in.Stats().Duplicates)
	b.requireOneEffectEach(t, ids(sent))
	require.Empty(t, b.log.String(), "logged at Warn or above")
}

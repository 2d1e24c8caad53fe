package inbox_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
)

// A consumer kept the order of keys, and does not any more. What waits behind others
// must not wait for a step that nobody makes, nor for a person.
func TestOrdering_NotKeptAnyMore(t *testing.T) {
	t.Parallel()

	b := setup(t)
	s := b.sequence(t, func(msg *handler.Message) error {
		if msg.ID == "dead" {
			return handler.Permanent(errors.New("unknown account"))
		}
		return nil
	})
	strict := b.inbox(t, s.handle, inbox.Config{Ordering: inbox.Strict})
	outcome, err := strict.Process(t.Context(), keyed("dead", "k"))
	require.NoError(t, err)
	require.Equal(t, handler.Dead, outcome)
	for _, id := range []string{"evt_1", "evt_2", "evt_3", "evt_4"} {
		_, err := strict.Store(t.Context(), keyed(id, "k"))
		require.NoError(t, err)
	}

	works(t, b.inbox(t, s.handle, inbox.Config{}))
	require.Eventually(t, func() bool { return b.inboxRows(t) == 1 }, deadline, tick) // what is parked
	require.Equal(t, []string{"evt_1", "evt_2", "evt_3", "evt_4"}, s.seen(t))
	require.NoError(t, inbox.NewStore(b.Schema).Discard(t.Context(), b.Pool, b.letters(t)[0].ID, "ann"))
	require.Zero(t, b.inboxRows(t))
}

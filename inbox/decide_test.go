package inbox_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
)

// A payload that a person decided against stays decided against when its dead
// letter was deleted and another copy of it comes: a replay of the new letter ends
// as discarded, and reopening it has the message handled. It once stayed
// replaying, for ever and with nothing that replayed it.
func TestReplay_DiscardedBeforeItsLetterWas(t *testing.T) {
	t.Parallel()

	b := setup(t)
	in := b.inbox(t, effect, inbox.Config{})
	store := inbox.NewStore(b.Schema)
	first, second := message("evt_1"), message("evt_1")
	second.Payload = []byte("another")
	process := func(msg *handler.Message, want handler.Outcome) {
		outcome, err := in.Process(t.Context(), msg)
		require.NoError(t, err)
		require.Equal(t, want, outcome)
	}
	process(first, handler.Processed)
	process(second, handler.Mismatch)
	require.NoError(t, store.Discard(t.Context(), b.Pool, b.letters(t)[0].ID, "ann"))
	b.exec(t, `DELETE FROM dead_letters`) // its retention is over
	process(second, handler.Mismatch)

	letter := b.letters(t)[0]
	require.Equal(t, dlq.Open, letter.State)
	outcome, err := in.Replay(t.Context(), letter.ID)
	require.NoError(t, err)
	require.Equal(t, handler.Duplicate, outcome)
	require.Equal(t, dlq.Discarded, b.letters(t)[0].State)
	require.Equal(t, 1, b.effects(t, "evt_1"))

	require.NoError(t, store.Reopen(t.Context(), b.Pool, letter.ID, "ann"))
	works(t, in)
	require.Eventually(t, func() bool { return b.letters(t)[0].State == dlq.Resolved }, deadline, tick)
	require.Equal(t, 2, b.effects(t, "evt_1"), "the second payload is a message of its own")
	require.Zero(t, b.inboxRows(t))
}

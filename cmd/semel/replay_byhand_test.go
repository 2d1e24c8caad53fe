package main_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/handler"
)

// Somebody has deleted from the inbox what was to be replayed. Its dead letter says
// that it is being handled again, and nobody would ever: it can be replayed once more.
func TestDLQ_ReplayWhatSomebodyDeleted(t *testing.T) {
	t.Parallel()

	s := newShop(t)
	s.send(t, handler.Dead, "sad", "p1")
	require.Contains(t, works(t, s.db, "dlq", "replay", "1", "-yes", "-by", "ann"), "1 of 1 are handled again\n")
	require.Contains(t, s.semel(t, "dlq", "replay", "1", "-yes").stdout, "1 is replaying: it is being handled again, decided by ann\n")
	s.exec(t, `DELETE FROM inbox_messages`)

	require.Contains(t, works(t, s.db, "dlq", "list", "-state", "replaying"), "p1")
	require.Contains(t, works(t, s.db, "dlq", "replay", "1", "-yes", "-by", "bob"), "1 of 1 are handled again\n")
	require.Equal(t, "bob", s.letter(t, 1).DecidedBy)

	s.mended.Store(true)
	s.works(t)
	require.Eventually(t, func() bool { return s.letter(t, 1).State == dlq.Resolved }, deadline, tick)
	require.Equal(t, []string{"p1"}, s.effects(t))
}

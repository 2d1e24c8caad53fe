package inbox_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
)

// What cannot be decided any more, or not so, says why and changes nothing.
func TestStore_DecidesRefused(t *testing.T) {
	t.Parallel()

	b := setup(t)
	var r refusing
	in := b.inbox(t, r.handle, inbox.Config{})
	for _, id := range []string{"resolved", "discarded", "redacted", "open"} {
		_, err := in.Process(t.Context(), message(id))
		require.NoError(t, err)
	}
	store := inbox.NewStore(b.Schema)
	letters := b.letters(t)
	r.mended.Store(true)
	_, err := in.Replay(t.Context(), letters[0].ID)
	require.NoError(t, err)
	for _, l := range letters[1:3] {
		require.NoError(t, store.Discard(t.Context(), b.Pool, l.ID, "ann"))
	}
	b.exec(t, `UPDATE dead_letters SET redacted_at = clock_timestamp() WHERE id = $1`, letters[2].ID)

	tests := []struct {
		id     int64
		decide func(s inbox.Store, ctx context.Context, db inbox.DB, id int64, by string) error
		is     error
		want   string
	}{
		{letters[0].ID, inbox.Store.Replay, inbox.ErrNoDeadLetter, "it is resolved"},
		{letters[0].ID, inbox.Store.Discard, inbox.ErrNoDeadLetter, "it is resolved"},
		{letters[0].ID, inbox.Store.Reopen, inbox.ErrNoDeadLetter, "it is resolved, not discarded"},
		{letters[1].ID, inbox.Store.Replay, inbox.ErrNoDeadLetter, "it is discarded, and only reopening it"},
		{letters[1].ID, inbox.Store.Discard, inbox.ErrNoDeadLetter, "it is discarded"},
		{letters[2].ID, inbox.Store.Reopen, inbox.ErrRedacted, "payload"},
		{letters[3].ID, inbox.Store.Reopen, inbox.ErrNoDeadLetter, "it is open, not discarded"},
		{99, inbox.Store.Replay, inbox.ErrNoDeadLetter, "there is none with this id"},
		{99, inbox.Store.Discard, inbox.ErrNoDeadLetter, "there is none with this id"},
		{99, inbox.Store.Reopen, inbox.ErrNoDeadLetter, "there is none with this id"},
	}
	for _, tt := range tests {
		err := tt.decide(store, t.Context(), b.Pool, tt.id, "bob")
		require.ErrorIs(t, err, tt.is)
		require.ErrorContains(t, err, tt.want)
	}
	var states []dlq.State
	for _, l := range b.letters(t) {
		states = append(states, l.State)
	}
	require.Equal(t, []dlq.State{dlq.Resolved, dlq.Discarded, dlq.Discarded, dlq.Open}, states)
	require.Zero(t, b.inboxRows(t))
}

// A program of before there was an inbox, or a person in psql, settles a dead letter
// and knows nothing of the place that its message holds.
func TestStrict_ParkedForASettledLetter(t *testing.T) {
	t.Parallel()

	b := setup(t)
	in := b.inbox(t, func(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
		if msg.ID == "a1" {
			return handler.Permanent(errors.New("no such order"))
		}
		return effect(ctx, tx, msg)
	}, inbox.Config{Ordering: inbox.Strict})
	for _, id := range []string{"a1", "a2"} {
		_, err := in.Process(t.Context(), keyed(id, "a"))
		require.NoError(t, err)
	}
	b.exec(t, `UPDATE dead_letters SET state = 'resolved', resolved_at = now()`)

	works(t, in)
	require.Eventually(t, func() bool { return b.effects(t, "a2") == 1 && b.inboxRows(t) == 0 }, deadline, tick)
}

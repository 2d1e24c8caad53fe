package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
)

// dead makes n dead letters, and returns their ids.
func (b *testBundle) dead(t *testing.T, in *inbox.Inbox, n int) (ids []int64) {
	t.Helper()
	for i := range n {
		outcome, err := in.Process(t.Context(), message(fmt.Sprintf("evt_%d", i)))
		require.NoError(t, err)
		require.Equal(t, handler.Dead, outcome)
	}
	for _, l := range b.letters(t) {
		ids = append(ids, l.ID)
	}
	return ids
}

func TestReplayAll(t *testing.T) {
	t.Parallel()

	b := setup(t)
	var r refusing
	in := b.inbox(t, r.handle, inbox.Config{})
	ids := b.dead(t, in, 5)
	store := inbox.NewStore(b.Schema)
	require.NoError(t, store.Discard(t.Context(), b.Pool, ids[1], "bob"))
	b.exec(t, `UPDATE dead_letters SET redacted_at = clock_timestamp() WHERE id = $1`, ids[3])

	// Nobody works the inbox.
	told := 0
	done, err := store.ReplayAll(t.Context(), b.Pool, append(ids, 99), inbox.ReplayAllConfig{By: "ann", Rate: -1, Progress: func(inbox.Replayed) { told++ }})
	require.NoError(t, err)
	require.Equal(t, []int64{ids[0], ids[2], ids[4]}, done.Begun)
	require.EqualValues(t, []int64{3, 0, 0}, []int64{done.Waiting, done.Handled, done.DiedAgain})
	require.Equal(t, 1, told)
	require.Len(t, done.Refused, 3)
	for i, want := range []error{inbox.ErrNoDeadLetter, inbox.ErrRedacted, inbox.ErrNoDeadLetter} {
		require.Equal(t, []int64{ids[1], ids[3], 99}[i], done.Refused[i].ID)
		require.ErrorIs(t, done.Refused[i].Err, want)
	}
	require.Equal(t, "ann", b.letters(t)[0].DecidedBy)

	r.mended.Store(true)
	works(t, in)
	require.Eventually(t, func() bool { return b.inboxRows(t) == 0 }, deadline, tick)
	require.Equal(t, 3, b.count(t, `SELECT count(*) FROM effects`))
	done, err = store.ReplayAll(t.Context(), b.Pool, ids, inbox.ReplayAllConfig{})
	require.NoError(t, err)
	require.Empty(t, done.Begun, "what was handled is not handled again")
}

// What killed the messages has not been mended: the bulk ends before it is through.
func TestReplayAll_DieAgain(t *testing.T) {
	t.Parallel()

	const n = 40
	b := setup(t)
	var r refusing
	in := b.inbox(t, r.handle, inbox.Config{})
	ids := b.dead(t, in, n)
	works(t, in)

	began := time.Now()
	done, err := inbox.NewStore(b.Schema).ReplayAll(t.Context(), b.Pool, ids, inbox.ReplayAllConfig{Rate: 4, MaxFailures: 3})
	require.ErrorIs(t, err, inbox.ErrDieAgain)
	require.GreaterOrEqual(t, done.DiedAgain, int64(3))
	require.Less(t, len(done.Begun), n)
	require.GreaterOrEqual(t, time.Since(began), time.Duration(len(done.Begun)-1)*time.Second/4, "it keeps its rate")
	require.Equal(t, dlq.Open, b.letters(t)[n-1].State)
	require.Equal(t, 1, b.letters(t)[n-1].Attempts)

	done, err = inbox.NewStore(b.Schema).ReplayAll(t.Context(), b.Pool, ids, inbox.ReplayAllConfig{Rate: -1, MaxFailures: -1})
	require.NoError(t, err)
	require.Len(t, done.Begun, n)
}

// Who ends it in the middle ends no replay that has begun; called again it goes on.
func TestReplayAll_Ended(t *testing.T) {
	t.Parallel()

	const n = 6
	b := setup(t)
	var mended atomic.Bool
	in := b.inbox(t, func(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
		if !mended.Load() {
			return handler.Permanent(errors.New("no such order"))
		}
		return effect(ctx, tx, msg)
	}, inbox.Config{})
	ids := b.dead(t, in, n)
	mended.Store(true)
	store := inbox.NewStore(b.Schema)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done, err := store.ReplayAll(ctx, b.Pool, ids, inbox.ReplayAllConfig{Rate: 1, Progress: func(inbox.Replayed) { cancel() }})
	require.ErrorIs(t, err, context.Canceled)
	require.NotEmpty(t, done.Begun)
	require.Less(t, len(done.Begun), n)

	works(t, in)
	require.Eventually(t, func() bool { return b.inboxRows(t) == 0 }, deadline, tick)
	rest, err := store.ReplayAll(t.Context(), b.Pool, ids, inbox.ReplayAllConfig{Rate: -1})
	require.NoError(t, err)
	require.Len(t, rest.Begun, n-len(done.Begun))
	require.Eventually(t, func() bool { return b.count(t, `SELECT count(*) FROM effects`) == n && b.inboxRows(t) == 0 }, deadline, tick)
}

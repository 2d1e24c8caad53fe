package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
	"github.com/semel-go/semel/transports/memory"
)

// runs runs in.Run until the test ends, or stop is called.
func runs(t *testing.T, in *inbox.Inbox, src handler.Source) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- in.Run(ctx, src) }()
	stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(t, <-done)
	})
	t.Cleanup(stop)
	return stop
}

// A key that fails fills its part of the inbox and no more: then Store says so,
// and a source is held up until there is room. Others go on. Nothing is lost, and
// order is kept.
func TestRoom_OfAKey(t *testing.T) {
	t.Parallel()

	b := setup(t)
	var mended atomic.Bool
	h := b.sequence(t, func(msg *handler.Message) error {
		if string(msg.Key) == "a" && !mended.Load() {
			return handler.RetryAfter(time.Hour, errors.New("not yet"))
		}
		return nil
	})
	in := b.inbox(t, h.handle, inbox.Config{Ordering: inbox.Strict, Retry: retries, MaxStoredPerKey: 3})
	outcome, err := in.Process(t.Context(), keyed("a1", "a"))
	require.NoError(t, err)
	require.Equal(t, handler.Stored, outcome)
	for _, id := range []string{"a2", "a3"} {
		outcome, err = in.Store(t.Context(), keyed(id, "a"))
		require.NoError(t, err)
		require.Equal(t, handler.Stored, outcome)
	}
	for _, accept := range []func(context.Context, *handler.Message) (handler.Outcome, error){in.Store, in.Process} {
		_, err = accept(t.Context(), keyed("a4", "a"))
		require.ErrorIs(t, err, inbox.ErrFull)
		require.ErrorContains(t, err, "MaxStoredPerKey")
	}
	require.Equal(t, 3, b.inboxRows(t))
	require.Zero(t, b.count(t, `SELECT count(*) FROM processed_messages WHERE message_text = 'a4'`), "it is not settled")

	q := memory.NewQueue("q")
	stop := runs(t, in, memory.NewSource(q))
	for _, id := range []string{"a4", "b1", "a5", "b2", "a6"} {
		require.NoError(t, errors.Join(q.Publish(t.Context(), []*handler.Message{keyed(id, id[:1])})...))
	}
	require.Eventually(t, func() bool { return len(h.seen(t)) == 2 }, deadline, tick)
	require.Equal(t, []string{"b1", "b2"}, h.seen(t))
	require.Equal(t, 3, b.inboxRows(t), "what it has no room for waits in its source")

	mended.Store(true)
	b.age(t, time.Hour)
	want := []string{"b1", "b2", "a1", "a2", "a3", "a4", "a5", "a6"}
	require.Eventually(t, func() bool { return len(h.seen(t)) == len(want) && b.inboxRows(t) == 0 }, deadline, tick)
	require.Equal(t, want, h.seen(t))
	require.NoError(t, q.Wait(t.Context()))
	stop()
}

// A full inbox holds its source up: messages wait in this process up to what it
// may hold, the rest in the source. When there is room they go on, also behind
// those of their own key that must make it; none is lost.
func TestRoom_OfAll(t *testing.T) {
	t.Parallel()

	const most, n, inFlight = 5, 20, 4
	tests := []struct {
		name, key string
		failing   int64 // at once
	}{
		{name: "NoKey", failing: inFlight},
		{name: "OneKey", key: "k", failing: 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			b := setup(t)
			var mended atomic.Bool
			in := b.inbox(t, func(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
				if !mended.Load() {
					return errors.New("not yet")
				}
				return effect(ctx, tx, msg)
			}, inbox.Config{QuickAttempts: 1, Retry: retries, MaxStored: most, MaxInFlight: inFlight})
			before := b.inbox(t, effect, inbox.Config{})
			for i := range most {
				_, err := before.Store(t.Context(), keyed(fmt.Sprint("evt_", i), tt.key))
				require.NoError(t, err)
			}
			b.age(t, -time.Hour)
			_, err := in.Store(t.Context(), keyed("evt_5", tt.key))
			require.ErrorIs(t, err, inbox.ErrFull)
			require.ErrorContains(t, err, "MaxStored")

			q := memory.NewQueue("q")
			stop := runs(t, in, memory.NewSource(q))
			for i := range n {
				require.NoError(t, errors.Join(q.Publish(t.Context(), []*handler.Message{keyed(fmt.Sprint("evt_", most+i), tt.key)})...))
			}
			require.Eventually(t, func() bool { return in.Stats().FailedAttempts == tt.failing }, deadline, tick)
			mended.Store(true)
			require.Never(t, func() bool { return in.Stats().FailedAttempts > tt.failing || b.inboxRows(t) > most }, 100*time.Millisecond, 10*time.Millisecond)

			b.age(t, time.Hour)
			require.NoError(t, q.Wait(t.Context()))
			require.Eventually(t, func() bool { return b.inboxRows(t) == 0 }, deadline, tick)
			stop()
			b.requireEffectsOnce(t, n+most)
			require.Empty(t, b.letters(t))
		})
	}
}

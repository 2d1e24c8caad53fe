package inbox_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
)

// A handler may take longer than the engine's own statements, and who gets the
// connection next longer than a COMMIT: no time limit stays behind.
func TestTimebox_EndsWithWhatItIsFor(t *testing.T) {
	t.Parallel()

	b := setup(t)
	pool := b.NewPool(t, 1)
	slow := func(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
		if _, err := tx.Exec(ctx, `SELECT pg_sleep(1)`); err != nil {
			return err
		}
		return effect(ctx, tx, msg)
	}
	limits := inbox.Config{StatementTimeout: 500 * time.Millisecond, LockTimeout: 100 * time.Millisecond, HandlerTimeout: 2 * time.Second}
	in := b.inboxOn(t, pool, "shipping", slow, limits)

	for _, want := range []handler.Outcome{handler.Processed, handler.Duplicate} {
		outcome, err := in.Process(t.Context(), message("evt_1"))
		require.NoError(t, err)
		require.Equal(t, want, outcome)
		require.Zero(t, in.Stats().FailedAttempts)

		_, err = pool.Exec(t.Context(), `SELECT pg_sleep(2.5)`)
		require.NoError(t, err)
	}
	require.Equal(t, int32(1), pool.Stat().TotalConns())
	require.Equal(t, int64(1), pool.Stat().NewConnsCount(), "no connection was broken")
}

// A server that does not answer a COMMIT leaves it in doubt; it is not waited
// for without end, and the message takes effect once.
func TestTimebox_UnansweredCommit(t *testing.T) {
	t.Parallel()

	b := setup(t)
	proxy, pool := b.through(t, "")
	freeze := true // only Process below runs the handler, one call after the other
	h := func(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
		if err := effect(ctx, tx, msg); err != nil || !freeze {
			return err
		}
		freeze = false
		proxy.BlackHole(true)
		proxy.Pause()
		return nil
	}
	in := b.inboxOn(t, pool, "shipping", h, inbox.Config{
		StatementTimeout: 2 * time.Second, LockTimeout: 200 * time.Millisecond, HandlerTimeout: 200 * time.Millisecond,
	})
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()

	_, err := in.Process(ctx, message("evt_1"))
	require.ErrorIs(t, err, inbox.ErrOutage)

	proxy.BlackHole(false)
	proxy.Cut()
	proxy.Resume()
	require.Eventually(t, func() bool {
		_, err := in.Process(t.Context(), message("evt_1"))
		return err == nil
	}, deadline, 10*time.Millisecond)
	require.Equal(t, 1, b.effects(t, "evt_1"))
	require.Zero(t, in.Stats().FailedAttempts)
	require.Empty(t, b.letters(t))
}

package inbox_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
)

// withinTx decides in a transaction that has begun before.
type withinTx struct{ pgx.Tx }

func (d withinTx) BeginTx(ctx context.Context, _ pgx.TxOptions) (pgx.Tx, error) {
	return d.Begin(ctx)
}

// keyIsWaitedFor waits until somebody waits for the lock of a key.
func (b *testBundle) keyIsWaitedFor(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool {
		return b.count(t, `SELECT count(*) FROM pg_stat_activity WHERE application_name = $1 AND wait_event = 'advisory'`, b.Schema) > 0
	}, deadline, tick)
}

// A worker finds that its message was discarded; before it can take it out, a person
// has reopened it. What stands there then is another one's to handle.
func TestReopen_WhileAWorkerTakesOutWhatWasDiscarded(t *testing.T) {
	t.Parallel()

	b := setup(t)
	slow := &blocking{release: make(chan struct{})}
	var mended atomic.Bool
	in := b.inbox(t, func(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
		switch {
		case msg.ID == "slow":
			return slow.handle(ctx, tx, msg)
		case !mended.Load():
			return handler.Permanent(errors.New("unknown account"))
		}
		return effect(ctx, tx, msg)
	}, inbox.Config{Ordering: inbox.Strict, Workers: 1})
	outcome, err := in.Process(t.Context(), keyed("evt_1", "k"))
	require.NoError(t, err)
	require.Equal(t, handler.Dead, outcome)
	mended.Store(true)
	letter := b.letters(t)[0].ID
	people := inbox.NewStore(b.Schema)

	// The worker has it, and no slot for it.
	_, err = in.Store(t.Context(), keyed("slow", "other"))
	require.NoError(t, err)
	works(t, in)
	require.Eventually(t, func() bool { return slow.running.Load() == 1 }, deadline, tick)
	require.NoError(t, people.Replay(t.Context(), b.Pool, letter, "ann"))
	require.Eventually(t, func() bool {
		return b.count(t, `SELECT count(*) FROM inbox_messages WHERE lease_owner IS NOT NULL`) == 2
	}, deadline, tick)
	require.NoError(t, people.Discard(t.Context(), b.Pool, letter, "ann"))

	// It looks, and waits for the key.
	tx, err := b.Pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(context.Background()) }()
	_, err = in.StoreTx(t.Context(), tx, keyed("evt_2", "k"))
	require.NoError(t, err)
	close(slow.release)
	b.keyIsWaitedFor(t)
	require.NoError(t, people.Reopen(t.Context(), withinTx{tx}, letter, "ben"))
	require.NoError(t, tx.Commit(t.Context()))

	require.Eventually(t, func() bool { return b.effects(t, "evt_1") == 1 && b.inboxRows(t) == 0 }, deadline, tick)
	require.Equal(t, 1, b.effects(t, "evt_2"))
	require.Equal(t, dlq.Resolved, b.letters(t)[0].State)
}

// Somebody has deleted by hand what was to be replayed. The dead letter still holds
// the message, and is no end.
func TestStore_ReplayWhatIsNotThereAnyMore(t *testing.T) {
	t.Parallel()

	b := setup(t)
	var mended atomic.Bool
	in := b.inbox(t, func(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
		if !mended.Load() {
			return handler.Permanent(errors.New("unknown account"))
		}
		return effect(ctx, tx, msg)
	}, inbox.Config{})
	_, err := in.Process(t.Context(), message("evt_1"))
	require.NoError(t, err)
	mended.Store(true)
	letter, people := b.letters(t)[0].ID, inbox.NewStore(b.Schema)
	require.NoError(t, people.Replay(t.Context(), b.Pool, letter, "ann"))
	require.NoError(t, people.Replay(t.Context(), b.Pool, letter, "ann"))
	b.exec(t, `DELETE FROM inbox_messages`)

	require.NoError(t, people.Replay(t.Context(), b.Pool, letter, "ben"))
	works(t, in)
	require.Eventually(t, func() bool { return b.letters(t)[0].State == dlq.Resolved }, deadline, tick)
	require.Equal(t, 1, b.effects(t, "evt_1"))
}

package inbox_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
)

// What a handler got as an answer may be anything, and goes into its error.
func TestRetry_ErrorThatIsNoText(t *testing.T) {
	t.Parallel()

	b := setup(t)
	var attempts atomic.Int32
	in := b.inbox(t, func(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
		if attempts.Add(1) < 6 {
			return errors.New("answer: \x00\xff")
		}
		return effect(ctx, tx, msg)
	}, inbox.Config{Retry: retries})
	outcome, err := in.Process(t.Context(), message("evt_1"))
	require.NoError(t, err)
	require.Equal(t, handler.Stored, outcome)
	works(t, in)
	require.Eventually(t, func() bool { return b.effects(t, "evt_1") == 1 }, deadline, tick)
	require.Empty(t, b.letters(t))
}

// An attempt counts, and its delay holds, also where the database takes its time to
// note that.
func TestRetry_NotedLate(t *testing.T) {
	t.Parallel()

	b := setup(t)
	fails := make(chan struct{})
	in := b.inbox(t, func(context.Context, pgx.Tx, *handler.Message) error {
		<-fails
		return handler.RetryAfter(time.Hour, errors.New("come back later"))
	}, inbox.Config{Ordering: inbox.Strict, Retry: retries, StatementTimeout: 300 * time.Millisecond})
	_, err := in.Store(t.Context(), keyed("evt_1", "k"))
	require.NoError(t, err)
	works(t, in)
	require.Eventually(t, func() bool { return len(b.events.kinds(inbox.Claimed)) == 1 }, deadline, tick)

	tx, err := b.Pool.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(context.Background()) }()
	_, err = tx.Exec(t.Context(), `SELECT FROM inbox_messages FOR UPDATE`)
	require.NoError(t, err)
	close(fails)
	waits := func() int {
		return b.count(t, `SELECT coalesce(max(pid), 0) FROM pg_stat_activity WHERE application_name = $1 AND wait_event_type = 'Lock'`, b.Schema)
	}
	var first int
	require.Eventually(t, func() bool { first = waits(); return first != 0 }, deadline, tick)
	require.Eventually(t, func() bool { second := waits(); return second != first }, deadline, tick) // its time was up
	require.NoError(t, tx.Rollback(t.Context()))

	require.Eventually(t, func() bool {
		return b.count(t, `SELECT count(*) FROM inbox_messages WHERE attempts = 1 AND lease_owner IS NULL AND ready_at > clock_timestamp() + interval '50 minutes'`) == 1
	}, deadline, tick)
	require.Len(t, b.events.kinds(inbox.Claimed), 1)
}

// A database may be set to another isolation than the handlers' transactions: what
// the engine does under a key's lock must see what its last holder did.
func TestStrict_BehindInADatabaseOfRepeatableReads(t *testing.T) {
	t.Parallel()

	b := setup(t)
	pool := b.with(t, map[string]string{"default_transaction_isolation": "repeatable read"})
	in := b.inboxOn(t, pool, "shipping", effect, inbox.Config{Ordering: inbox.Strict, TxOptions: pgx.TxOptions{IsoLevel: pgx.ReadCommitted}})
	for _, id := range []string{"evt_1", "evt_2"} {
		_, err := in.Store(t.Context(), keyed(id, "k"))
		require.NoError(t, err)
	}
	b.exec(t, `UPDATE inbox_messages SET ready_at = clock_timestamp() + CASE WHEN ready_at IS NULL THEN interval '0' ELSE interval '1 hour' END`)

	// While the second is put back behind the first, that one goes.
	tx, err := b.Pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(context.Background()) }()
	_, err = in.StoreTx(t.Context(), tx, keyed("evt_3", "k"))
	require.NoError(t, err)
	works(t, in)
	b.keyIsWaitedFor(t)
	_, err = tx.Exec(t.Context(), `DELETE FROM inbox_messages WHERE ready_at > clock_timestamp() + interval '30 minutes'`)
	require.NoError(t, err)
	require.NoError(t, tx.Commit(t.Context()))
	require.Eventually(t, func() bool { return b.effects(t, "evt_2") == 1 && b.effects(t, "evt_3") == 1 }, deadline, tick)
}

// Attempts that take long, one after the other, take longer than the lease: they
// count all the same, and no other worker has the message meanwhile.
func TestRetry_QuickAttemptsOutlastTheLease(t *testing.T) {
	t.Parallel()

	b := setup(t)
	var attempts atomic.Int32
	slow := func(ctx context.Context, tx pgx.Tx, _ *handler.Message) error {
		attempts.Add(1)
		if _, err := tx.Exec(ctx, `SELECT pg_sleep(1.5)`); err != nil {
			return err
		}
		return errors.New("the carrier's answer is no use")
	}
	cfg := inbox.Config{
		Lease: 3 * time.Second, HandlerTimeout: 1900 * time.Millisecond, WatchdogGrace: 50 * time.Millisecond,
		QuickDelay: 200 * time.Millisecond, QuickMaxDelay: 400 * time.Millisecond, Retry: inbox.Retry{Attempts: 4, Delay: time.Millisecond, MaxDelay: time.Millisecond},
	}
	one, two := b.inbox(t, slow, cfg), b.inbox(t, slow, cfg)
	_, err := one.Store(t.Context(), message("evt_1"))
	require.NoError(t, err)
	works(t, one)
	works(t, two)
	require.Eventually(t, func() bool { return len(b.letters(t)) == 1 }, 2*deadline, 50*tick)
	require.Equal(t, int32(4), attempts.Load())
	require.Equal(t, 4, b.letters(t)[0].Attempts)
}

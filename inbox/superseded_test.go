package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/dedup"
	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
	"github.com/semel-go/semel/transports/memory"
)

// ending is a handler that leaves its effect and has the message end so.
func ending(outcome handler.Outcome) handler.Func {
	return func(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
		handler.CauseFrom(ctx).End(outcome)
		return effect(ctx, tx, msg)
	}
}

// outcomeOf is how a message ended, as the table says.
func (b *testBundle) outcomeOf(t *testing.T, id string) (outcome handler.Outcome) {
	t.Helper()
	require.NoError(t, b.Pool.QueryRow(t.Context(), `SELECT outcome FROM processed_messages WHERE message_id = message_id($1)`, id).Scan(&outcome))
	return outcome
}

// version is a message that carries the whole of an order, as it was then.
func version(id, key string, n int64) *handler.Message {
	return &handler.Message{ID: id, Type: "order.updated", Key: []byte(key), Version: n, Payload: []byte(id)}
}

func (b *testBundle) guarded(h handler.Func, cfg dedup.GuardConfig) handler.Func {
	return dedup.NewStore(b.Schema).VersionGuard(cfg)(h)
}

// An outcome that only the handler knows stands in the table, is told to whoever
// asks, and is as good as any: a copy is a duplicate.
func TestEnd(t *testing.T) {
	t.Parallel()

	for _, tt := range []struct{ asked, want handler.Outcome }{
		{asked: handler.Superseded, want: handler.Superseded},
		{asked: handler.Skipped, want: handler.Skipped},
		{asked: handler.Dead, want: handler.Processed}, // not the handler's to say
		{asked: handler.Stored, want: handler.Processed},
	} {
		t.Run(tt.asked.String(), func(t *testing.T) {
			t.Parallel()

			b := setup(t)
			in := b.inbox(t, ending(tt.asked), inbox.Config{})

			outcome, err := in.Process(t.Context(), message("evt_1"))
			require.NoError(t, err)
			require.Equal(t, tt.want, outcome)
			require.Equal(t, tt.want, b.outcomeOf(t, "evt_1"))
			require.Equal(t, 1, b.effects(t, "evt_1"), "what it wrote is committed")
			settled := b.events.kinds(inbox.Settled)
			require.Len(t, settled, 1)
			require.Equal(t, tt.want, settled[0].Outcome)

			outcome, err = in.Process(t.Context(), message("evt_1"))
			require.NoError(t, err)
			require.Equal(t, handler.Duplicate, outcome)
			stats := in.Stats()
			require.EqualValues(t, 1, stats.Duplicates)
			require.EqualValues(t, 1, map[handler.Outcome]int64{
				handler.Processed: stats.Processed, handler.Superseded: stats.Superseded, handler.Skipped: stats.Skipped,
			}[tt.want])
		})
	}
}

// An attempt that fails says nothing, and what it wanted is not remembered by the next.
func TestEnd_OfAFailedAttempt(t *testing.T) {
	t.Parallel()

	b := setup(t)
	in := b.inbox(t, func(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
		if cause := handler.CauseFrom(ctx); cause.Attempt == 1 {
			cause.End(handler.Superseded)
			return errors.Join(effect(ctx, tx, msg), errors.New("stock is away"))
		}
		return effect(ctx, tx, msg)
	}, inbox.Config{})

	outcome, err := in.Process(t.Context(), message("evt_1"))

	require.NoError(t, err)
	require.Equal(t, handler.Processed, outcome)
	require.Equal(t, handler.Processed, b.outcomeOf(t, "evt_1"))
	require.Equal(t, 1, b.effects(t, "evt_1"))
	require.EqualValues(t, 1, in.Stats().FailedAttempts)
}

// A message that waited in the inbox leaves it when it ends superseded, and the next
// of its key goes on.
func TestEnd_LeavesTheInbox(t *testing.T) {
	t.Parallel()

	for _, ordering := range []inbox.Ordering{inbox.PerKey, inbox.Strict, inbox.ViaInbox} {
		t.Run(ordering.String(), func(t *testing.T) {
			t.Parallel()

			b := setup(t)
			in := b.inbox(t, b.guarded(effect, dedup.GuardConfig{}), inbox.Config{Ordering: ordering})
			for _, msg := range []*handler.Message{version("evt_2", "1", 2), version("evt_1", "1", 1), version("evt_3", "1", 3)} {
				outcome, err := in.Store(t.Context(), msg)
				require.NoError(t, err)
				require.Equal(t, handler.Stored, outcome)
			}

			works(t, in)

			require.Eventually(t, func() bool { return b.inboxRows(t) == 0 && in.Stats().Processed+in.Stats().Superseded == 3 }, deadline, tick)
			stats := in.Stats()
			if ordering != inbox.PerKey { // which may begin with the last
				require.Equal(t, handler.Superseded, b.outcomeOf(t, "evt_1"))
				require.EqualValues(t, []int64{2, 1}, []int64{stats.Processed, stats.Superseded})
			}
			require.EqualValues(t, stats.Superseded, b.count(t, `SELECT count(*) FROM processed_messages WHERE outcome = 2`))
			require.EqualValues(t, stats.Processed, b.count(t, `SELECT count(*) FROM effects`))
			require.Equal(t, handler.Processed, b.outcomeOf(t, "evt_3"))
		})
	}
}

// Case H6: an order was deleted, and the message that says so came before the one of
// its last update: the update brought the order back (cashier-stripe#1759).
func TestVersionGuard_DeletedBeforeUpdated(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.exec(t, `CREATE TABLE orders (id text PRIMARY KEY, status text NOT NULL)`)
	updated := func(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
		_, err := tx.Exec(ctx, `INSERT INTO orders VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET status = excluded.status`, string(msg.Key), string(msg.Payload))
		return err
	}
	deleted := func(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
		_, err := tx.Exec(ctx, `DELETE FROM orders WHERE id = $1`, string(msg.Key))
		return err
	}
	mux := handler.Mux(map[string]handler.Func{"order.updated": updated, "order.deleted": deleted}, nil)
	in := b.inbox(t, b.guarded(mux, dedup.GuardConfig{}), inbox.Config{})
	queue := memory.NewQueue("orders")
	last := version("evt_3", "1", 3)
	last.Type = "order.deleted"
	errs := queue.Publish(t.Context(), []*handler.Message{
		version("evt_1", "1", 1), last, version("evt_2", "1", 2), version("other", "2", 2), version("evt_2", "1", 2),
	})
	require.NoError(t, errors.Join(errs...))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- in.Run(ctx, memory.NewSource(queue)) }()
	waiting, stop := context.WithTimeout(t.Context(), deadline)
	defer stop()
	require.NoError(t, queue.Wait(waiting))
	cancel()
	require.NoError(t, <-ended)

	require.Equal(t, 1, b.count(t, `SELECT count(*) FROM orders`), "only the other order")
	require.Equal(t, handler.Superseded, b.outcomeOf(t, "evt_2"))
	stats := in.Stats()
	require.EqualValues(t, []int64{3, 1, 1}, []int64{stats.Processed, stats.Superseded, stats.Duplicates})
	require.Empty(t, b.letters(t))
}

// What died was overtaken before a person had it handled again. The person is told.
func TestReplay_Superseded(t *testing.T) {
	t.Parallel()

	b := setup(t)
	var r refusing
	in := b.inbox(t, b.guarded(r.handle, dedup.GuardConfig{}), inbox.Config{})
	for i := range 4 {
		_, err := in.Process(t.Context(), version(fmt.Sprint("old_", i), fmt.Sprint(i), 1))
		require.NoError(t, err)
	}
	r.mended.Store(true)
	for i := range 3 {
		_, err := in.Process(t.Context(), version(fmt.Sprint("new_", i), fmt.Sprint(i), 2))
		require.NoError(t, err)
	}
	other := version("new_1", "1", 1) // another payload under an id that is known
	other.Payload = []byte("of another order")
	_, err := in.Process(t.Context(), other)
	require.NoError(t, err)
	var ids []int64
	for _, l := range b.letters(t) {
		ids = append(ids, l.ID)
		require.Zero(t, l.Outcome)
	}
	require.Len(t, ids, 5)

	outcome, err := in.Replay(t.Context(), ids[0])
	require.NoError(t, err)
	require.Equal(t, handler.Superseded, outcome)
	require.Zero(t, b.effects(t, "old_0"))

	// In a bulk, where others work the inbox.
	store := inbox.NewStore(b.Schema)
	done, err := store.ReplayAll(t.Context(), b.Pool, ids[1:], inbox.ReplayAllConfig{Rate: -1})
	require.NoError(t, err)
	require.Len(t, done.Begun, 4)
	works(t, in)
	require.Eventually(t, func() bool { return b.inboxRows(t) == 0 }, deadline, tick)
	var outcomes []handler.Outcome
	for _, l := range b.letters(t) {
		require.Equal(t, dlq.Resolved, l.State)
		outcomes = append(outcomes, l.Outcome)
	}
	require.Equal(t, []handler.Outcome{handler.Superseded, handler.Superseded, handler.Superseded, handler.Processed, handler.Superseded}, outcomes)
}

// A bulk counts what had no effect apart from what had.
func TestReplayAll_Superseded(t *testing.T) {
	t.Parallel()

	b := setup(t)
	var mended bool
	in := b.inbox(t, func(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
		switch {
		case !mended:
			return handler.Permanent(errors.New("no such order"))
		case msg.ID == "evt_1":
			handler.CauseFrom(ctx).End(handler.Superseded)
		case msg.ID == "evt_2":
			handler.CauseFrom(ctx).End(handler.Skipped)
		}
		return effect(ctx, tx, msg)
	}, inbox.Config{})
	ids := b.dead(t, in, 5)
	mended = true

	// The last of them does not begin before the others have ended.
	begins, err := b.Pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = begins.Exec(t.Context(), `SELECT FROM dead_letters WHERE id = $1 FOR UPDATE`, ids[4])
	require.NoError(t, err)
	bulk := make(chan inbox.Replayed, 1)
	go func() {
		done, _ := inbox.NewStore(b.Schema).ReplayAll(t.Context(), b.Pool, ids, inbox.ReplayAllConfig{Rate: -1})
		bulk <- done
	}()
	for _, id := range ids[:4] {
		require.Eventually(t, func() bool {
			return b.count(t, `SELECT count(*) FROM dead_letters WHERE id = $1 AND state = 'replaying'`, id) == 1
		}, deadline, tick)
		_, err := in.Replay(t.Context(), id)
		require.NoError(t, err)
	}
	require.NoError(t, begins.Commit(t.Context()))
	done := <-bulk
	require.Len(t, done.Begun, 5)
	require.EqualValues(t, []int64{2, 1, 1, 0, 1}, []int64{done.Handled, done.Superseded, done.Skipped, done.DiedAgain, done.Waiting})
	require.Equal(t, handler.Skipped, b.letters(t)[2].Outcome)
}

// A version waits in the inbox for the one below it.
func TestVersionGuard_HeldUntilTheMissingOneCame(t *testing.T) {
	t.Parallel()

	b := setup(t)
	in := b.inbox(t, b.guarded(effect, dedup.GuardConfig{Hold: 100 * time.Millisecond, First: 1}), inbox.Config{
		Retry: inbox.Retry{Attempts: 1000},
	})
	for _, msg := range []*handler.Message{version("evt_3", "1", 3), version("evt_2", "1", 2)} {
		outcome, err := in.Process(t.Context(), msg)
		require.NoError(t, err)
		require.Equal(t, handler.Stored, outcome)
	}
	works(t, in)

	outcome, err := in.Process(t.Context(), version("evt_1", "1", 1))
	require.NoError(t, err)
	require.Equal(t, handler.Processed, outcome)
	require.Eventually(t, func() bool { return b.inboxRows(t) == 0 }, deadline, tick)
	require.Equal(t, 3, b.count(t, `SELECT count(*) FROM effects`))
	require.Zero(t, in.Stats().Superseded)
}

// The missing one never comes: the message ends in front of a person, who lets it run.
func TestVersionGuard_HeldForNothing(t *testing.T) {
	t.Parallel()

	b := setup(t)
	in := b.inbox(t, b.guarded(effect, dedup.GuardConfig{Hold: time.Millisecond, First: 1}), inbox.Config{Retry: inbox.Retry{Attempts: 3}})
	works(t, in)
	_, err := in.Process(t.Context(), version("evt_2", "1", 2))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return len(b.letters(t)) == 1 }, deadline, tick)
	letter := b.letters(t)[0]
	require.Equal(t, dlq.Exhausted, letter.Reason)
	require.Contains(t, letter.Errors[0], dedup.ErrGap.Error())

	outcome, err := in.Replay(t.Context(), letter.ID)
	require.NoError(t, err)
	require.Equal(t, handler.Processed, outcome)
	gaps, err := dedup.NewStore(b.Schema).Gaps(t.Context(), b.Pool, "shipping", 10)
	require.NoError(t, err)
	require.Len(t, gaps, 1)
	require.EqualValues(t, 1, gaps[0].Gaps)
}

// childVersions is a second process that handles every second version.
const childVersions = "versions"

// manyVersions are how many versions two processes handle of an entity.
const manyVersions = 200

// writeState is a handler that replaces the whole state, and leaves a trace.
func writeState(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
	_, err := tx.Exec(ctx, `WITH written AS (UPDATE state SET version = $1) INSERT INTO trace (version) VALUES ($1)`, msg.Version)
	return err
}

// processVersions has a process handle those of the versions that are its own, in no
// order.
func processVersions(ctx context.Context, pool *pgxpool.Pool, schemaName string, odd bool) error {
	h := dedup.NewStore(schemaName).VersionGuard(dedup.GuardConfig{})(writeState)
	in, err := inbox.New(pool, "shipping", h, inbox.Config{Schema: schemaName})
	if err != nil {
		return err
	}
	errs := make(chan error, manyVersions)
	n := 0
	for _, i := range rand.Perm(manyVersions) {
		if v := int64(i + 1); v%2 == 1 == odd {
			n++
			go func() {
				_, err := in.Process(ctx, version(fmt.Sprint("evt_", v), "1", v))
				errs <- err
			}()
		}
	}
	for range n {
		err = errors.Join(err, <-errs)
	}
	return err
}

// childWritesVersions is the second process.
func childWritesVersions(ctx context.Context, pool *pgxpool.Pool, schemaName string, ready func()) int {
	ready()
	if err := processVersions(ctx, pool, schemaName, true); err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("done")
	return 0
}

// Two processes handle the versions of one entity at once. No older one is written
// over a newer, and the highest ends up.
func TestVersionGuard_TwoProcesses(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.exec(t, `CREATE TABLE state (version bigint NOT NULL)`)
	b.exec(t, `INSERT INTO state VALUES (0)`)
	b.exec(t, `CREATE TABLE trace (n bigint GENERATED ALWAYS AS IDENTITY, version bigint NOT NULL)`)
	second := b.child(t, childVersions)
	second.goOn(t)
	require.NoError(t, processVersions(t.Context(), b.Pool, b.Schema, false))
	second.await(t, "done")
	require.NoError(t, second.Wait())

	require.Equal(t, manyVersions, b.count(t, `SELECT version FROM state`))
	require.Zero(t, b.count(t, `SELECT count(*) FROM (SELECT version, lag(version) OVER (ORDER BY n) AS before FROM trace) AS t WHERE version <= before`))
	require.Equal(t, manyVersions, b.count(t, `SELECT count(*) FROM processed_messages`))
	require.Equal(t, b.count(t, `SELECT count(*) FROM trace`), b.count(t, `SELECT count(*) FROM processed_messages WHERE outcome = 1`))
}

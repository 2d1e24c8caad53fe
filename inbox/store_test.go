package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
)

// works runs in.Work until the test ends, or stop is called.
func works(t *testing.T, in *inbox.Inbox) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- in.Work(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(t, <-done)
	})
	t.Cleanup(stop)
	return stop
}

// retries is a schedule that tests need not wait for.
var retries = inbox.Retry{Attempts: 8, Delay: time.Millisecond, MaxDelay: 20 * time.Millisecond}

// keyed is a message of a key.
func keyed(id, key string) *handler.Message {
	return &handler.Message{ID: id, Type: "order.paid", Key: []byte(key), Payload: []byte(id)}
}

// inboxRows is what the inbox holds.
func (b *testBundle) inboxRows(t *testing.T) int {
	t.Helper()
	return b.count(t, `SELECT count(*) FROM inbox_messages`)
}

// sequence writes down in what order messages take effect.
type sequence struct {
	b    *testBundle
	fail func(msg *handler.Message) error
}

func (b *testBundle) sequence(t *testing.T, fail func(msg *handler.Message) error) *sequence {
	t.Helper()
	b.exec(t, `CREATE TABLE sequence (n bigint GENERATED ALWAYS AS IDENTITY, id text NOT NULL)`)
	return &sequence{b: b, fail: fail}
}

func (s *sequence) handle(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
	if err := s.fail(msg); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `INSERT INTO sequence (id) VALUES ($1)`, msg.ID)
	return err
}

func (s *sequence) seen(t *testing.T) []string {
	t.Helper()
	rows, err := s.b.Pool.Query(t.Context(), `SELECT id FROM sequence ORDER BY n`)
	require.NoError(t, err)
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return ids
}

func TestStore(t *testing.T) {
	t.Parallel()

	b := setup(t)
	in := b.inbox(t, effect, inbox.Config{})
	outcome, err := in.Store(t.Context(), message("evt_1"))
	require.NoError(t, err)
	require.Equal(t, handler.Stored, outcome)
	require.Zero(t, b.effects(t, "evt_1"))

	for _, again := range []func(context.Context, *handler.Message) (handler.Outcome, error){in.Store, in.Process} {
		outcome, err = again(t.Context(), message("evt_1"))
		require.NoError(t, err)
		require.Equal(t, handler.Duplicate, outcome)
	}
	other := message("evt_1")
	other.Payload = []byte("another")
	outcome, err = in.Store(t.Context(), other)
	require.NoError(t, err)
	require.Equal(t, handler.Mismatch, outcome)
	outcome, err = in.Store(t.Context(), message(" "))
	require.NoError(t, err)
	require.Equal(t, handler.Dead, outcome)

	works(t, in)
	require.Eventually(t, func() bool { return b.effects(t, "evt_1") == 1 && b.inboxRows(t) == 0 }, deadline, tick)
	outcome, err = in.Store(t.Context(), message("evt_1"))
	require.NoError(t, err)
	require.Equal(t, handler.Duplicate, outcome)
	require.Equal(t, 1, b.effects(t, "evt_1"))
}

// A message whose quick attempts are spent moves to the inbox, and is handled from
// there when it can be.
// Case H5: a copy came while a handler had the message in hand, and had to wait until the
// handler was done: the provider took that for a failure. What is stored is known to be,
// handled or not; so is that its payload is another one.
func TestStore_CopyWhileItsHandlerRuns(t *testing.T) {
	t.Parallel()

	for _, ordering := range []inbox.Ordering{inbox.PerKey, inbox.Strict} {
		t.Run(ordering.String(), func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			running, release := make(chan struct{}), make(chan struct{})
			in := b.inbox(t, func(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
				close(running)
				<-release
				return effect(ctx, tx, msg)
			}, inbox.Config{Ordering: ordering})
			works(t, in)
			outcome, err := in.Store(t.Context(), keyed("evt_1", "a"))
			require.NoError(t, err)
			require.Equal(t, handler.Stored, outcome)
			<-running

			for _, other := range []*inbox.Inbox{in, b.inbox(t, effect, inbox.Config{Ordering: ordering})} {
				outcome, err = other.Store(t.Context(), keyed("evt_1", "a"))
				require.NoError(t, err)
				require.Equal(t, handler.Duplicate, outcome)
				changed := keyed("evt_1", "a")
				changed.Payload = []byte("changed")
				outcome, err = other.Store(t.Context(), changed)
				require.NoError(t, err)
				require.Equal(t, handler.Mismatch, outcome)
			}
			require.Zero(t, b.effects(t, "evt_1"), "the handler still runs")
			close(release)
			require.Eventually(t, func() bool { return b.effects(t, "evt_1") == 1 }, deadline, tick)
		})
	}
}

func TestProcess_StoredAfterQuickAttempts(t *testing.T) {
	t.Parallel()

	b := setup(t)
	var attempts atomic.Int32
	in := b.inbox(t, func(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
		if attempts.Add(1) < 6 {
			return errors.New("not yet")
		}
		return effect(ctx, tx, msg)
	}, inbox.Config{Retry: retries})
	outcome, err := in.Process(t.Context(), message("evt_1"))
	require.NoError(t, err)
	require.Equal(t, handler.Stored, outcome)
	require.EqualValues(t, 3, attempts.Load())
	require.Equal(t, 3, b.count(t, `SELECT attempts FROM inbox_messages`))

	works(t, in)
	require.Eventually(t, func() bool { return b.effects(t, "evt_1") == 1 && b.inboxRows(t) == 0 }, deadline, tick)
	require.EqualValues(t, 6, attempts.Load())
	require.Empty(t, b.letters(t))
}

func TestWork_Exhausted(t *testing.T) {
	t.Parallel()

	b := setup(t)
	var called atomic.Pointer[dlq.Letter]
	in := b.inbox(t, func(context.Context, pgx.Tx, *handler.Message) error { return errors.New("no stock") },
		inbox.Config{Retry: retries, DeadLetterOwner: "shop", OnDeadLetter: func(_ context.Context, l *dlq.Letter) { called.Store(l) }})
	_, err := in.Process(t.Context(), message("evt_1"))
	require.NoError(t, err)
	works(t, in)

	require.Eventually(t, func() bool { return called.Load() != nil }, deadline, tick)
	letters := b.letters(t)
	require.Len(t, letters, 1)
	require.Equal(t, dlq.Exhausted, letters[0].Reason)
	require.Equal(t, 8, letters[0].Attempts)
	require.EqualValues(t, 1, letters[0].Count)
	require.Equal(t, letters[0].ID, called.Load().ID)
	require.Zero(t, b.inboxRows(t), "without order nothing waits behind it")
}

// Case P7: a poison message at the head of a key with order required: its key
// waits in order, other keys go on; resolving or skipping the head releases the
// rest (Axon sequenced dead letters).
func TestStrict_PoisonAtTheHead(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"Replayed", "Discarded"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()

			b := setup(t)
			var mended atomic.Bool
			h := b.sequence(t, func(msg *handler.Message) error {
				if msg.ID == "a1" && !mended.Load() {
					return handler.Permanent(errors.New("no such order"))
				}
				return nil
			})
			in := b.inbox(t, h.handle, inbox.Config{Ordering: inbox.Strict, Retry: retries})
			process := func(id, key string, want handler.Outcome) {
				outcome, err := in.Process(t.Context(), keyed(id, key))
				require.NoError(t, err)
				require.Equal(t, want, outcome, id)
			}
			process("a1", "a", handler.Dead)
			process("a2", "a", handler.Stored)
			process("b1", "b", handler.Processed)
			stop := works(t, in)
			process("a3", "a", handler.Stored)
			process("b2", "b", handler.Processed)
			process("a2", "a", handler.Duplicate)
			stop() // through a restart
			works(t, b.inbox(t, h.handle, inbox.Config{Ordering: inbox.Strict, Retry: retries}))
			process("a4", "a", handler.Stored)
			require.Equal(t, []string{"b1", "b2"}, h.seen(t))
			require.Equal(t, 4, b.inboxRows(t))

			store, letters := inbox.NewStore(b.Schema), b.letters(t)
			want := []string{"b1", "b2", "a2", "a3", "a4"}
			if way == "Replayed" {
				mended.Store(true)
				want = []string{"b1", "b2", "a1", "a2", "a3", "a4"}
				require.NoError(t, store.Replay(t.Context(), b.Pool, letters[0].ID, "ann"))
			} else {
				require.NoError(t, store.Discard(t.Context(), b.Pool, letters[0].ID, "ann"))
			}
			require.Eventually(t, func() bool { return len(h.seen(t)) == len(want) && b.inboxRows(t) == 0 }, deadline, tick)
			require.Equal(t, want, h.seen(t))
			process("a5", "a", handler.Processed)
			require.Equal(t, "ann", b.letters(t)[0].DecidedBy)
		})
	}
}

// A key of 10,000 waiting messages goes on in order, whoever works it: so many with
// SEMEL_TEST_BEHIND=10000, as make soak has it.
func TestStrict_ManyBehind(t *testing.T) {
	t.Parallel()

	n := 300
	if set := os.Getenv("SEMEL_TEST_BEHIND"); set != "" {
		var err error
		n, err = strconv.Atoi(set)
		require.NoError(t, err)
	}
	b := setup(t)
	var mended atomic.Bool
	h := b.sequence(t, func(*handler.Message) error {
		if !mended.Load() {
			return errors.New("not yet")
		}
		return nil
	})
	in := b.inbox(t, h.handle, inbox.Config{Ordering: inbox.Strict, Retry: inbox.Retry{Attempts: 1000, Delay: time.Millisecond, MaxDelay: 20 * time.Millisecond}})
	var want []string
	var msgs []*handler.Message
	for i := range n {
		id := fmt.Sprintf("m%05d", i)
		want = append(want, id)
		if i < 10 { // each way in
			outcome, err := in.Process(t.Context(), keyed(id, "k"))
			require.NoError(t, err)
			require.Equal(t, handler.Stored, outcome)
		} else {
			msgs = append(msgs, keyed(id, "k"))
		}
	}
	_, err := in.StoreAll(t.Context(), msgs)
	require.NoError(t, err)
	works(t, in)
	works(t, b.inbox(t, h.handle, inbox.Config{Ordering: inbox.Strict}))
	mended.Store(true)
	require.Eventually(t, func() bool { return b.inboxRows(t) == 0 }, deadline+time.Duration(n)*100*time.Millisecond, tick)
	require.Equal(t, want, h.seen(t))
}

func TestStoreAll(t *testing.T) {
	t.Parallel()

	b := setup(t)
	h := b.sequence(t, func(*handler.Message) error { return nil })
	in := b.inbox(t, h.handle, inbox.Config{Ordering: inbox.Strict})
	_, err := in.Store(t.Context(), keyed("a1", "a"))
	require.NoError(t, err)
	other := keyed("a1", "a")
	other.Payload = []byte("another")
	huge := keyed("a5", "a")
	huge.Type = "a\x00b" // no text: kept all the same

	outcomes, err := in.StoreAll(t.Context(), []*handler.Message{
		keyed("a2", "a"), keyed("a1", "a"), message(""), keyed("a3", "a"), keyed("a2", "a"), other, keyed("b1", "b"), huge,
	})
	require.NoError(t, err)
	require.Equal(t, []handler.Outcome{
		handler.Stored, handler.Duplicate, handler.Dead, handler.Stored, handler.Duplicate, handler.Mismatch, handler.Stored, handler.Stored,
	}, outcomes)
	require.Equal(t, 2, b.count(t, `SELECT count(*) FROM inbox_messages WHERE ready_at IS NOT NULL`))
	works(t, in)
	require.Eventually(t, func() bool { return b.inboxRows(t) == 0 }, deadline, tick)
	require.Equal(t, []string{"a1", "a2", "a3", "a5"}, slices.DeleteFunc(h.seen(t), func(id string) bool { return id == "b1" }))
	require.Len(t, h.seen(t), 5)
}

func TestStoreTx(t *testing.T) {
	t.Parallel()

	b := setup(t)
	in := b.inbox(t, effect, inbox.Config{})
	works(t, in)
	gone := errors.New("the caller's own")
	store := func(msg *handler.Message, want handler.Outcome, result error) {
		err := pgx.BeginFunc(t.Context(), b.Pool, func(tx pgx.Tx) error {
			outcome, err := in.StoreTx(t.Context(), tx, msg)
			require.NoError(t, err)
			require.Equal(t, want, outcome)
			return result
		})
		require.ErrorIs(t, err, result)
	}
	store(message("evt_1"), handler.Stored, gone)
	require.Zero(t, b.inboxRows(t), "it was rolled back with the caller's transaction")
	store(message("evt_1"), handler.Stored, nil)
	store(message("evt_1"), handler.Duplicate, nil)
	other := message("evt_1")
	other.Payload = []byte("another")
	store(other, handler.Mismatch, nil)
	store(message(""), handler.Dead, nil)
	store(message(""), handler.Duplicate, nil)
	require.Eventually(t, func() bool { return b.effects(t, "evt_1") == 1 && b.inboxRows(t) == 0 }, deadline, tick)
	require.Len(t, b.letters(t), 2)
}

// Who takes a message out of a key must see what came behind it meanwhile.
func TestStrict_NeedsReadCommitted(t *testing.T) {
	t.Parallel()

	b := setup(t)
	pool := b.with(t, map[string]string{"default_transaction_isolation": "repeatable read"})
	in := b.inboxOn(t, pool, "shipping", effect, inbox.Config{Ordering: inbox.Strict})
	_, err := in.Process(t.Context(), message("evt_1"))
	require.ErrorIs(t, err, inbox.ErrIsolation)
	require.ErrorContains(t, err, "repeatable read")
	in = b.inboxOn(t, pool, "shipping", effect, inbox.Config{Ordering: inbox.Strict, TxOptions: pgx.TxOptions{IsoLevel: pgx.ReadCommitted}})
	_, err = in.Process(t.Context(), message("evt_1"))
	require.NoError(t, err)
}

// A source that says nothing about order cannot be trusted with it.
func TestStrict_NeedsAnOrderedSource(t *testing.T) {
	t.Parallel()

	b := setup(t)
	in := b.inbox(t, effect, inbox.Config{Ordering: inbox.Strict})
	err := in.Run(t.Context(), sourceFunc(func(context.Context, handler.Sink) error { return nil }))
	require.ErrorIs(t, err, inbox.ErrUnordered)
}

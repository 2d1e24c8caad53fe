package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
)

// hurried reports whether the inbox is empty, and else has what waits for a time
// tried at once: a person who is in a hurry.
func (b *testBundle) hurried(t *testing.T) bool {
	t.Helper()
	store := inbox.NewStore(b.Schema)
	records, err := store.List(t.Context(), b.Pool, inbox.Filter{State: inbox.StateDelayed, Limit: 1000})
	require.NoError(t, err)
	for _, r := range records {
		_, err := store.RunNow(t.Context(), b.Pool, r.Consumer, r.Message.ID)
		require.NoError(t, err)
	}
	return b.inboxRows(t) == 0
}

// Two programs work one consumer, as in a rolling deploy: the old one has no
// handler for a type. It leaves those messages alone, and they keep their places.
func TestWork_TypeOfAnotherProgram(t *testing.T) {
	t.Parallel()

	b := setup(t)
	h := b.sequence(t, func(*handler.Message) error { return nil })
	program := func(types ...string) *inbox.Inbox {
		routes := make(map[string]handler.Func)
		for _, kind := range types {
			routes[kind] = h.handle
		}
		return b.inboxOn(t, b.NewPool(t, 5), "shipping", handler.Mux(routes, nil), inbox.Config{Ordering: inbox.Strict})
	}
	old, recent := program("order.paid"), program("order.paid", "order.sent")
	var want []string
	for i := range 8 {
		id := fmt.Sprintf("k%03d-%d", i/4, i)
		msg := keyed(id, id[:4])
		if i%2 == 1 {
			msg.Type = "order.sent"
		}
		want = append(want, id)
		outcome, err := recent.Store(t.Context(), msg)
		require.NoError(t, err)
		require.Equal(t, handler.Stored, outcome)
	}

	works(t, old)
	require.Eventually(t, func() bool {
		return b.count(t, `SELECT count(*) FROM inbox_messages WHERE ready_at > clock_timestamp() AND lease_owner IS NULL`) == 2
	}, deadline, tick)
	require.ElementsMatch(t, []string{"k000-0", "k001-4"}, h.seen(t), "what is behind waits")
	records, err := inbox.NewStore(b.Schema).List(t.Context(), b.Pool, inbox.Filter{State: inbox.StateDelayed})
	require.NoError(t, err)
	require.Len(t, records, 2)
	for _, r := range records {
		require.Contains(t, r.Errors[0], "unknown message type")
		require.Zero(t, r.Attempts)
	}

	works(t, recent)
	require.Eventually(t, func() bool { return b.hurried(t) }, deadline, tick)
	seen := h.ofKeys(t)
	require.Equal(t, want, append(seen["k000"], seen["k001"]...))
	require.Empty(t, b.letters(t))
}

// Somebody replays a dead letter where nobody has its handler: it waits for who has.
func TestReplay_TypeOfAnotherProgram(t *testing.T) {
	t.Parallel()

	b := setup(t)
	old := b.inbox(t, handler.Mux(map[string]handler.Func{"order.sent": effect}, nil), inbox.Config{})
	outcome, err := old.Process(t.Context(), message("evt_1"))
	require.NoError(t, err)
	require.Equal(t, handler.Dead, outcome)
	letter := b.letters(t)[0]
	require.Equal(t, dlq.UnknownType, letter.Reason)

	outcome, err = old.Replay(t.Context(), letter.ID)
	require.NoError(t, err)
	require.Equal(t, handler.Stored, outcome)
	works(t, old)
	require.NoError(t, inbox.NewStore(b.Schema).Replay(t.Context(), b.Pool, letter.ID, "ann"))
	_, err = inbox.NewStore(b.Schema).RunNow(t.Context(), b.Pool, "shipping", "evt_1")
	require.NoError(t, err)
	require.Equal(t, dlq.Replaying, b.letters(t)[0].State)
	require.Zero(t, b.effects(t, "evt_1"))

	works(t, b.inbox(t, effect, inbox.Config{}))
	require.Eventually(t, func() bool { return b.hurried(t) }, deadline, tick)
	require.Equal(t, 1, b.effects(t, "evt_1"))
	require.Equal(t, dlq.Resolved, b.letters(t)[0].State)
	require.Equal(t, 1, b.letters(t)[0].Attempts, "it was not tried in vain")
}

// Nobody has had the handler for as long as a message may fail: a person must know.
func TestWork_TypeOfNobody(t *testing.T) {
	t.Parallel()

	b := setup(t)
	in := b.inbox(t, handler.Mux(map[string]handler.Func{}, nil), inbox.Config{})
	_, err := in.Store(t.Context(), message("evt_1"))
	require.NoError(t, err)
	b.exec(t, `UPDATE inbox_messages SET stored_at = stored_at - interval '400 days'`)
	works(t, in)
	require.Eventually(t, func() bool { return len(b.letters(t)) == 1 }, deadline, tick)
	require.Equal(t, dlq.UnknownType, b.letters(t)[0].Reason)
	require.Zero(t, b.inboxRows(t))
}

// Two consumers have one table. What the one cannot handle is not taken by the
// other, and what the one decides does not touch the other's.
func TestWork_AnotherConsumer(t *testing.T) {
	t.Parallel()

	b := setup(t)
	consumer := func(name string, h handler.Func) *inbox.Inbox {
		return b.inboxOn(t, b.NewPool(t, 5), name, h, inbox.Config{Ordering: inbox.Strict})
	}
	shipping := consumer("shipping", effect)
	billing := consumer("billing", func(context.Context, pgx.Tx, *handler.Message) error {
		return handler.Permanent(errors.New("no such order"))
	})
	for _, in := range []*inbox.Inbox{shipping, billing} {
		for _, id := range []string{"evt_1", "evt_2"} {
			outcome, err := in.Store(t.Context(), keyed(id, "k"))
			require.NoError(t, err)
			require.Equal(t, handler.Stored, outcome)
		}
	}
	works(t, billing)
	require.Eventually(t, func() bool { return len(b.letters(t)) == 1 }, deadline, tick)
	store := inbox.NewStore(b.Schema)
	status := func() (waiting map[string]inbox.ConsumerStatus) {
		st, err := store.Status(t.Context(), b.Pool)
		require.NoError(t, err)
		waiting = make(map[string]inbox.ConsumerStatus)
		for _, c := range st.Consumers {
			waiting[c.Consumer] = c
		}
		return waiting
	}
	require.EqualValues(t, []int64{1, 1}, []int64{status()["billing"].Parked, status()["billing"].Behind})
	require.EqualValues(t, []int64{1, 1}, []int64{status()["shipping"].Ready, status()["shipping"].Behind})

	require.NoError(t, store.Discard(t.Context(), b.Pool, b.letters(t)[0].ID, "ann"))
	require.Eventually(t, func() bool { return len(b.letters(t)) == 2 }, deadline, tick)
	require.EqualValues(t, []int64{1, 1}, []int64{status()["shipping"].Ready, status()["shipping"].Behind})
	works(t, shipping)
	require.Eventually(t, func() bool { return b.effects(t, "evt_1") == 1 && b.effects(t, "evt_2") == 1 }, deadline, tick)
	require.EqualValues(t, 1, status()["billing"].Parked)
}

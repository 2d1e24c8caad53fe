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

	"github.com/semel-go/semel/dedup"
	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
)

// waiting fills the inbox with a message in each state: ready r1, delayed d1, taken
// t1, parked p1 with b1 and b2 behind it.
func (b *testBundle) waiting(t *testing.T) *inbox.Inbox {
	t.Helper()
	in := b.inbox(t, func(_ context.Context, _ pgx.Tx, msg *handler.Message) error {
		if string(msg.Key) == "p" {
			return handler.Permanent(errors.New("no such order"))
		}
		return errors.New("not yet")
	}, inbox.Config{Ordering: inbox.Strict, Retry: inbox.Retry{Attempts: 8, Delay: time.Hour, MaxDelay: time.Hour}})
	for _, one := range []struct {
		id, key string
		want    handler.Outcome
		store   bool
	}{
		{id: "r1", key: "r", want: handler.Stored, store: true},
		{id: "t1", key: "t", want: handler.Stored, store: true},
		{id: "d1", key: "d", want: handler.Stored},
		{id: "p1", key: "p", want: handler.Dead},
		{id: "b1", key: "p", want: handler.Stored},
		{id: "b2", key: "p", want: handler.Stored},
	} {
		send := in.Process
		if one.store {
			send = in.Store
		}
		msg := keyed(one.id, one.key)
		msg.Headers = handler.Headers{{Name: "h", Value: []byte("v")}}
		outcome, err := send(t.Context(), msg)
		require.NoError(t, err)
		require.Equal(t, one.want, outcome, one.id)
	}
	b.exec(t, `UPDATE inbox_messages SET ready_at = clock_timestamp() + interval '30 minutes' WHERE message_text = 'd1'`)
	b.exec(t, `UPDATE inbox_messages SET ready_at = clock_timestamp() + interval '1 minute', lease_owner = gen_random_uuid() WHERE message_text = 't1'`)
	return in
}

func TestStatus(t *testing.T) {
	t.Parallel()

	b := setup(t)
	store := inbox.NewStore(b.Schema)
	st, err := store.Status(t.Context(), b.Pool)
	require.NoError(t, err)
	require.Empty(t, st.Consumers)

	b.waiting(t)
	_, err = b.inboxOn(t, b.Pool, "billing", effect, inbox.Config{}).Store(t.Context(), message("evt_1"))
	require.NoError(t, err)
	b.exec(t, `INSERT INTO inbox_messages (consumer_id, message_id, ready_at) VALUES (-7, gen_random_uuid(), 'infinity')`) // nobody's
	b.exec(t, `UPDATE inbox_messages SET ready_at = ready_at - interval '2 hours', stored_at = stored_at - interval '2 hours' WHERE message_text = 'r1'`)
	b.exec(t, `UPDATE inbox_messages SET stored_at = stored_at - interval '10 days' WHERE parked_at IS NOT NULL`)

	st, err = store.Status(t.Context(), b.Pool)
	require.NoError(t, err)
	require.False(t, st.AtLeast)
	require.Len(t, st.Consumers, 3)
	billing, shipping, nobody := st.Consumers[0], st.Consumers[1], st.Consumers[2]
	require.Equal(t, inbox.ConsumerStatus{ConsumerID: -7, Delayed: 1, Oldest: nobody.Oldest}, nobody, "never due is not due")
	require.Equal(t, inbox.ConsumerStatus{
		Consumer: "billing", ConsumerID: dedup.ConsumerID("billing"), Ready: 1, OldestReady: billing.OldestReady, Oldest: billing.Oldest,
	}, billing)
	require.Equal(t, inbox.ConsumerStatus{
		Consumer: "shipping", ConsumerID: dedup.ConsumerID("shipping"), Ready: 1, Delayed: 1, Taken: 1, Behind: 2, Parked: 1,
		OldestReady: shipping.OldestReady, Oldest: shipping.Oldest, NextDue: shipping.NextDue,
	}, shipping)
	require.EqualValues(t, 6, shipping.Total())
	require.InDelta(t, 2*time.Hour, shipping.OldestReady, float64(time.Minute))
	require.InDelta(t, 240*time.Hour, shipping.Oldest, float64(time.Minute))
	require.WithinDuration(t, time.Now().Add(30*time.Minute), shipping.NextDue, 5*time.Minute)
}

func ids(records []inbox.Record) (ids []string) {
	for i := range records {
		ids = append(ids, records[i].Message.ID)
	}
	return ids
}

func TestList(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.waiting(t)
	_, err := b.inboxOn(t, b.Pool, "billing", effect, inbox.Config{}).Store(t.Context(), &handler.Message{ID: "evt_1", Type: "order.sent", Key: []byte("p")})
	require.NoError(t, err)
	store := inbox.NewStore(b.Schema)

	tests := []struct {
		name   string
		filter inbox.Filter
		want   []string
	}{
		{name: "All", want: []string{"r1", "t1", "d1", "p1", "b1", "b2", "evt_1"}},
		{name: "Ready", filter: inbox.Filter{State: inbox.StateReady}, want: []string{"r1", "evt_1"}},
		{name: "Delayed", filter: inbox.Filter{State: inbox.StateDelayed}, want: []string{"d1"}},
		{name: "Taken", filter: inbox.Filter{State: inbox.StateTaken}, want: []string{"t1"}},
		{name: "Behind", filter: inbox.Filter{State: inbox.StateBehind}, want: []string{"b1", "b2"}},
		{name: "Parked", filter: inbox.Filter{State: inbox.StateParked}, want: []string{"p1"}},
		{name: "Consumer", filter: inbox.Filter{Consumer: "billing"}, want: []string{"evt_1"}},
		{name: "NoConsumer", filter: inbox.Filter{Consumer: "nobody"}},
		{name: "Type", filter: inbox.Filter{Type: "order.sent"}, want: []string{"evt_1"}},
		{name: "TypeOfAParkedOne", filter: inbox.Filter{Type: "order.paid", State: inbox.StateParked}, want: []string{"p1"}},
		{name: "Key", filter: inbox.Filter{Key: []byte("p")}, want: []string{"p1", "b1", "b2", "evt_1"}},
		{name: "KeyOfAConsumer", filter: inbox.Filter{Key: []byte("p"), Consumer: "shipping"}, want: []string{"p1", "b1", "b2"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			records, err := store.List(t.Context(), b.Pool, tt.filter)
			require.NoError(t, err)
			require.Equal(t, tt.want, ids(records))
			for _, r := range records {
				require.Empty(t, r.Message.Payload)
				require.Empty(t, r.Message.Headers)
				require.Empty(t, r.Damage)
			}
		})
	}

	t.Run("Pages", func(t *testing.T) {
		var all []string
		for f := (inbox.Filter{Limit: 3}); ; {
			page, err := store.List(t.Context(), b.Pool, f)
			require.NoError(t, err)
			if len(page) == 0 {
				break
			}
			require.LessOrEqual(t, len(page), 3)
			all = append(all, ids(page)...)
			f.After = page[len(page)-1].Seq
		}
		require.Equal(t, []string{"r1", "t1", "d1", "p1", "b1", "b2", "evt_1"}, all)
	})

	t.Run("Refused", func(t *testing.T) {
		for _, f := range []inbox.Filter{{Limit: -1}, {After: -1}, {State: "lost"}} {
			_, err := store.List(t.Context(), b.Pool, f)
			require.Error(t, err)
		}
	})
}

func TestLoad(t *testing.T) {
	t.Parallel()

	b := setup(t)
	in := b.waiting(t)
	store := inbox.NewStore(b.Schema)
	load := func(id string) *inbox.Whole {
		w, err := store.Load(t.Context(), b.Pool, "shipping", id)
		require.NoError(t, err)
		return w
	}

	d1 := load("d1")
	require.Equal(t, inbox.StateDelayed, d1.State)
	require.Equal(t, 3, d1.Attempts)
	require.Equal(t, []string{"not yet"}, d1.Errors)
	require.False(t, d1.FirstFailedAt.IsZero() || d1.LastFailedAt.IsZero() || d1.ReadyAt.IsZero() || d1.StoredAt.IsZero())
	require.Equal(t, dedup.MessageID("d1"), d1.MessageID)
	require.Equal(t, dedup.Fingerprint("order.paid", []byte("d1")), *d1.Fingerprint)
	require.Equal(t, []byte("d1"), d1.Message.Payload)
	require.Equal(t, handler.Headers{{Name: "h", Value: []byte("v")}}, d1.Message.Headers)
	require.Nil(t, d1.Letter)
	require.Empty(t, d1.Before)

	p1 := load("p1")
	require.Equal(t, inbox.StateParked, p1.State)
	require.Equal(t, dlq.Permanent, p1.Letter.Reason)
	require.Equal(t, p1.Letter.ID, p1.DeadLetterID)
	require.Equal(t, []byte("p1"), p1.Message.Payload, "the dead letter holds it")
	require.False(t, p1.ParkedAt.IsZero())

	b2 := load("b2")
	require.Equal(t, []string{"p1", "b1"}, ids(b2.Before))
	require.EqualValues(t, 2, b2.CountBefore)

	bySeq, err := store.LoadSeq(t.Context(), b.Pool, b2.Seq)
	require.NoError(t, err)
	require.Equal(t, b2, bySeq)

	for i := range 12 {
		_, err := in.Process(t.Context(), keyed(fmt.Sprintf("more%d", i), "p"))
		require.NoError(t, err)
	}
	last := load("more11")
	require.Len(t, last.Before, 10)
	require.EqualValues(t, 14, last.CountBefore)

	_, err = store.Load(t.Context(), b.Pool, "shipping", "nope")
	require.ErrorIs(t, err, inbox.ErrNotFound)
	_, err = store.Load(t.Context(), b.Pool, "billing", "d1")
	require.ErrorIs(t, err, inbox.ErrNotFound)
	_, err = store.LoadSeq(t.Context(), b.Pool, 1<<40)
	require.ErrorIs(t, err, inbox.ErrNotFound)
}

func TestRunNow(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.waiting(t)
	store := inbox.NewStore(b.Schema)
	places := func() (all map[string]int64) {
		records, err := store.List(t.Context(), b.Pool, inbox.Filter{})
		require.NoError(t, err)
		all = make(map[string]int64)
		for _, r := range records {
			all[r.Message.ID] = r.Seq
		}
		return all
	}
	before := places()

	results, err := store.RunNow(t.Context(), b.Pool, "shipping", "d1", "r1", "t1", "b1", "b2", "p1", "nope")
	require.NoError(t, err)
	require.Len(t, results, 7)
	require.Equal(t, inbox.RunNowResult{ID: "d1", Changed: true, State: inbox.StateReady}, results[0])
	require.Equal(t, inbox.RunNowResult{ID: "r1", State: inbox.StateReady}, results[1])
	require.Equal(t, inbox.RunNowResult{ID: "t1", State: inbox.StateTaken}, results[2])
	for _, r := range results[3:5] {
		require.False(t, r.Changed)
		require.Equal(t, inbox.StateBehind, r.State)
		require.Equal(t, "p1", r.First.Message.ID)
		require.Equal(t, inbox.StateParked, r.First.State)
	}
	require.Equal(t, inbox.StateParked, results[5].State)
	require.Equal(t, b.letters(t)[0].ID, results[5].DeadLetterID)
	require.Equal(t, inbox.RunNowResult{ID: "nope"}, results[6])

	require.Equal(t, before, places(), "no place changes")
	require.Equal(t, 3, b.count(t, `SELECT attempts FROM inbox_messages WHERE message_text = 'd1'`))
	require.Equal(t, 1, b.count(t, `SELECT count(*) FROM inbox_messages WHERE lease_owner IS NOT NULL`))
}

// A message that was to wait for an hour is handled at once, and so is what waits
// behind it.
func TestRunNow_IsHandled(t *testing.T) {
	t.Parallel()

	b := setup(t)
	var mended atomic.Bool
	h := b.sequence(t, func(*handler.Message) error {
		if !mended.Load() {
			return errors.New("not yet")
		}
		return nil
	})
	in := b.inbox(t, h.handle, inbox.Config{Ordering: inbox.Strict, Retry: inbox.Retry{Attempts: 8, Delay: time.Hour, MaxDelay: time.Hour}})
	for _, id := range []string{"a1", "a2", "a3"} {
		outcome, err := in.Process(t.Context(), keyed(id, "a"))
		require.NoError(t, err)
		require.Equal(t, handler.Stored, outcome)
	}
	b.exec(t, `UPDATE inbox_messages SET ready_at = clock_timestamp() + interval '30 minutes' WHERE message_text = 'a1'`) // full jitter: it could be soon
	works(t, in)
	mended.Store(true)

	results, err := inbox.NewStore(b.Schema).RunNow(t.Context(), b.Pool, "shipping", "a1")
	require.NoError(t, err)
	require.True(t, results[0].Changed)
	require.Eventually(t, func() bool { return b.inboxRows(t) == 0 }, deadline, tick)
	require.Equal(t, []string{"a1", "a2", "a3"}, h.seen(t))
}

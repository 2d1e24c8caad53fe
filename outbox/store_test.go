package outbox_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/outbox"
)

// eventID is the id of the n-th event of a test.
func eventID(n int) string { return fmt.Sprintf("0193c000-0000-7000-8000-%012d", n) }

// oneOfEach writes, in this order, an event in each state, of orders 1 to 5,
// and one that is pending and of another type.
func (b *testBundle) oneOfEach(t *testing.T) outbox.Store {
	t.Helper()
	for n := range 5 {
		e := order(fmt.Sprint(n+1), 1)
		e.ID = eventID(n + 1)
		b.write(t, e)
	}
	b.write(t, outbox.Event{ID: eventID(6), AggregateType: "invoice", AggregateID: "9", Type: "InvoiceSent"})
	b.exec(t, `UPDATE semel.outbox SET next_attempt_at = clock_timestamp() + interval '1 hour', attempts = 2, lease_attempts = 2,
		first_failed_at = clock_timestamp(), last_error = 'no' WHERE id = $1`, eventID(2))
	b.exec(t, `UPDATE semel.outbox SET quarantined_at = clock_timestamp(), attempts = 3, lease_attempts = 3,
		first_failed_at = clock_timestamp(), last_error = 'never' WHERE id = $1`, eventID(3))
	b.exec(t, `UPDATE semel.outbox SET published_at = clock_timestamp() WHERE id = $1`, eventID(4))
	b.exec(t, `UPDATE semel.outbox SET discarded_at = clock_timestamp(), quarantined_at = clock_timestamp() WHERE id = $1`, eventID(5))
	return outbox.NewStore(b.Schema)
}

func TestStore_Status(t *testing.T) {
	t.Parallel()

	b := setup(t)
	empty, err := outbox.NewStore(b.Schema).Status(t.Context(), b.Pool)
	require.NoError(t, err)
	require.Empty(t, empty.Kinds)
	require.Equal(t, 256, empty.UnownedShards)
	require.Zero(t, empty.Total())

	store := b.oneOfEach(t)
	b.exec(t, `UPDATE semel.outbox SET created_at = created_at - interval '1 hour' WHERE aggregatetype = 'order'`)
	b.exec(t, `UPDATE semel.outbox SET created_at = created_at - interval '1 day' WHERE quarantined_at IS NOT NULL OR published_at IS NOT NULL`)
	b.exec(t, `ANALYZE semel.outbox`)

	st, err := store.Status(t.Context(), b.Pool)

	require.NoError(t, err)
	require.Len(t, st.Kinds, 2)
	invoice, orders := st.Kinds[0], st.Kinds[1]
	require.Equal(t, outbox.KindStatus{AggregateType: "invoice", Pending: 1, Oldest: invoice.Oldest}, invoice)
	require.Equal(t, outbox.KindStatus{AggregateType: "order", Pending: 1, Waiting: 1, Quarantined: 1, Oldest: orders.Oldest}, orders)
	require.Less(t, invoice.Oldest, time.Hour)
	require.Positive(t, invoice.Oldest)
	require.InDelta(t, time.Hour, orders.Oldest, float64(10*time.Minute), "neither the one in quarantine nor the published one counts")
	require.Equal(t, outbox.KindStatus{Pending: 2, Waiting: 1, Quarantined: 1, Oldest: orders.Oldest}, st.Total())
	require.Equal(t, int64(6), st.Rows)
	require.Positive(t, st.Bytes)
	require.False(t, st.AtLeast)

	few, err := store.WithMaxCounted(1).Status(t.Context(), b.Pool)
	require.NoError(t, err)
	require.True(t, few.AtLeast)
	require.Equal(t, []int64{1, 1}, []int64{few.Total().Pending, few.Total().Waiting + few.Total().Quarantined})
}

// Two relays share the shards; what a third one held that died is nobody's.
func TestStore_Status_Relays(t *testing.T) {
	t.Parallel()

	b := setup(t)
	store := outbox.NewStore(b.Schema)
	one, two := quick(), quick()
	one.Name, two.Name = "one", "two"
	b.relay(t, &recorder{}, one)
	second := b.relay(t, &recorder{}, two)
	status := func() *outbox.Status {
		st, err := store.Status(t.Context(), b.Pool)
		require.NoError(t, err)
		return st
	}
	require.Eventually(t, func() bool {
		st := status()
		return len(st.Relays) == 2 && st.Relays[0].Shards == 128 && st.Relays[1].Shards == 128
	}, deadline, tick)
	require.ElementsMatch(t, []string{"one", "two"}, []string{status().Relays[0].Name, status().Relays[1].Name})
	require.WithinDuration(t, time.Now(), status().Relays[0].StartedAt, 10*time.Minute)

	second.stop()
	require.Eventually(t, func() bool {
		st := status()
		return len(st.Relays) == 1 && st.Relays[0].Shards == 256 && st.UnownedShards == 0
	}, deadline, tick)

	b.exec(t, `UPDATE semel.relay_leases SET expires_at = clock_timestamp() - interval '1 s', owner = gen_random_uuid() WHERE lo < 16`)
	require.Equal(t, 16, status().UnownedShards)
}

func TestStore_List(t *testing.T) {
	t.Parallel()

	b := setup(t)
	store := b.oneOfEach(t)
	b.exec(t, `UPDATE semel.outbox SET created_at = created_at - interval '1 hour' WHERE id = ANY ($1)`, []string{eventID(1), eventID(3)})

	tests := []struct {
		name   string
		filter outbox.Filter
		want   []int
	}{
		{name: "All", want: []int{6, 5, 4, 3, 2, 1}},
		{name: "Pending", filter: outbox.Filter{State: outbox.StatePending}, want: []int{1, 6}},
		{name: "PendingOfAType", filter: outbox.Filter{State: outbox.StatePending, AggregateType: "invoice"}, want: []int{6}},
		{name: "Waiting", filter: outbox.Filter{State: outbox.StateWaiting}, want: []int{2}},
		{name: "Quarantined", filter: outbox.Filter{State: outbox.StateQuarantined}, want: []int{3}},
		{name: "Published", filter: outbox.Filter{State: outbox.StatePublished}, want: []int{4}},
		{name: "Discarded", filter: outbox.Filter{State: outbox.StateDiscarded}, want: []int{5}},
		{name: "OfAnAggregate", filter: outbox.Filter{AggregateType: "order", AggregateID: "1"}, want: []int{1}},
		{name: "OfNone", filter: outbox.Filter{State: outbox.StateWaiting, AggregateID: "1"}, want: nil},
		{name: "Older", filter: outbox.Filter{Older: 10 * time.Minute}, want: []int{3, 1}},
		{name: "OlderPending", filter: outbox.Filter{State: outbox.StatePending, Older: 10 * time.Minute}, want: []int{1}},
		{name: "Limit", filter: outbox.Filter{Limit: 2}, want: []int{6, 5}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			records, err := store.List(t.Context(), b.Pool, tt.filter)

			require.NoError(t, err)
			var want, got []string
			for _, n := range tt.want {
				want = append(want, eventID(n))
			}
			for _, r := range records {
				got = append(got, r.ID)
				require.Nil(t, r.Payload)
				require.Equal(t, query[string](t, b, `SELECT state FROM semel.events WHERE id = $1`, r.ID), string(r.State))
			}
			require.Equal(t, want, got)
		})
	}

	for _, f := range []outbox.Filter{{Limit: -1}, {Older: -1}, {State: "lost"}} {
		_, err := store.List(t.Context(), b.Pool, f)
		require.ErrorContains(t, err, "list events: ")
	}
}

// An event comes back as it was written.
func TestStore_Load(t *testing.T) {
	t.Parallel()

	b := setup(t)
	store := b.oneOfEach(t)
	written := outbox.Event{
		ID: eventID(7), AggregateType: "order", AggregateID: "7", Type: "OrderPaid", Version: 3, Payload: []byte{0, 0xff}, ContentType: "application/cbor",
		OccurredAt: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), CorrelationID: "c", CausationID: "d", Source: "shop",
		Headers: handler.Headers{{Name: "a", Value: []byte("1"), Tag: 'I'}, {Name: "none"}, {Name: "a", Value: []byte{}}},
	}
	b.write(t, written)

	r, err := store.Load(t.Context(), b.Pool, eventID(7))
	require.NoError(t, err)
	require.Equal(t, written, r.Event)
	require.Equal(t, outbox.StatePending, r.State)
	require.WithinDuration(t, time.Now(), r.CreatedAt, 10*time.Minute)
	require.Equal(t, query[int](t, b, `SELECT shard::int FROM semel.outbox WHERE id = $1`, eventID(7)), r.Shard)
	require.Equal(t, query[int64](t, b, `SELECT seq FROM semel.outbox WHERE id = $1`, eventID(7)), r.Seq)

	r, err = store.Load(t.Context(), b.Pool, eventID(3))
	require.NoError(t, err)
	require.Equal(t, []any{outbox.StateQuarantined, 3, "never"}, []any{r.State, r.Attempts, r.LastError})
	require.NotZero(t, r.QuarantinedAt)
	require.NotZero(t, r.FirstFailedAt)
	require.Zero(t, r.OccurredAt)

	for _, id := range []string{eventID(99), "evt_1", ""} {
		_, err = store.Load(t.Context(), b.Pool, id)
		require.ErrorIs(t, err, outbox.ErrNotFound)
	}
}

// The zero value is the store of the default schema.
func TestStore_DefaultSchema(t *testing.T) {
	t.Parallel()

	b := setup(t)
	_, err := outbox.Store{}.Load(t.Context(), b.Pool, eventID(1))
	require.Error(t, err)
	if !query[bool](t, b, `SELECT to_regclass('semel.outbox') IS NOT NULL`) {
		require.ErrorContains(t, err, `relation "semel.outbox" does not exist`)
	}
}

package dlq_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/handler"
)

func TestStore_ListAndCount(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.exec(t, `INSERT INTO semel.consumers (id, name) VALUES (semel.consumer_id('shipping'), 'shipping'), (semel.consumer_id('billing'), 'billing')`)
	var shipping, billing int32
	require.NoError(t, b.pool.QueryRow(t.Context(), `SELECT id FROM `+`"`+b.schema+`".consumers WHERE name = 'shipping'`).Scan(&shipping))
	require.NoError(t, b.pool.QueryRow(t.Context(), `SELECT id FROM `+`"`+b.schema+`".consumers WHERE name = 'billing'`).Scan(&billing))
	add := func(n byte, consumerID int32, reason dlq.Reason, kind string) int64 {
		return b.add(t, &dlq.Letter{
			ConsumerID: consumerID, MessageID: [16]byte{n}, Reason: reason,
			Message: &handler.Message{ID: "evt", Type: kind, Payload: []byte("p"), Headers: handler.Headers{{Name: "a"}}},
		})
	}
	first := add(1, shipping, dlq.Permanent, "paid")
	second := add(2, billing, dlq.Exhausted, "paid")
	third := add(3, shipping, dlq.Exhausted, "sent")
	unknown := add(4, 99, dlq.Permanent, "paid") // of a consumer that was never registered
	b.exec(t, `UPDATE semel.dead_letters SET state = 'resolved' WHERE id = $1`, third)
	b.exec(t, `UPDATE semel.dead_letters SET owner = CASE id WHEN $1 THEN 'ann' WHEN $2 THEN 'bob' ELSE '' END WHERE id <> $3`, second, third, unknown)

	tests := []struct {
		name   string
		filter dlq.Filter
		want   []int64
	}{
		{name: "All", want: []int64{unknown, third, second, first}},
		{name: "Consumer", filter: dlq.Filter{Consumer: "shipping"}, want: []int64{third, first}},
		{name: "NoSuchConsumer", filter: dlq.Filter{Consumer: "nobody"}},
		{name: "State", filter: dlq.Filter{State: dlq.Resolved}, want: []int64{third}},
		{name: "Reason", filter: dlq.Filter{Reason: dlq.Permanent}, want: []int64{unknown, first}},
		{name: "Type", filter: dlq.Filter{Type: "sent"}, want: []int64{third}},
		{name: "Owner", filter: dlq.Filter{Owner: "ann"}, want: []int64{second}},
		{name: "NoSuchOwner", filter: dlq.Filter{Owner: "Ann"}},
		{name: "Unowned", filter: dlq.Filter{Unowned: true}, want: []int64{unknown, first}},
		{name: "OpenAndUnowned", filter: dlq.Filter{Unowned: true, State: dlq.Open, Consumer: "shipping"}, want: []int64{first}},
		{name: "Together", filter: dlq.Filter{Consumer: "shipping", State: dlq.Open, Reason: dlq.Permanent, Type: "paid"}, want: []int64{first}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			letters, err := b.store.List(t.Context(), b.pool, tt.filter)
			require.NoError(t, err)
			var ids []int64
			for _, l := range letters {
				ids = append(ids, l.ID)
				require.Nil(t, l.Message.Payload)
				require.Nil(t, l.Message.Headers)
			}
			require.Equal(t, tt.want, ids)

			n, err := b.store.Count(t.Context(), b.pool, tt.filter)
			require.NoError(t, err)
			require.Equal(t, int64(len(tt.want)), n)
		})
	}

	t.Run("Pages", func(t *testing.T) {
		page, err := b.store.List(t.Context(), b.pool, dlq.Filter{Limit: 3})
		require.NoError(t, err)
		require.Len(t, page, 3)
		require.Equal(t, []string{"", "shipping", "billing"}, []string{page[0].Consumer, page[1].Consumer, page[2].Consumer})
		page, err = b.store.List(t.Context(), b.pool, dlq.Filter{Limit: 3, Before: page[2].ID})
		require.NoError(t, err)
		require.Len(t, page, 1)
		require.Equal(t, first, page[0].ID)
	})

	t.Run("Consumers", func(t *testing.T) {
		names, err := b.store.Consumers(t.Context(), b.pool)
		require.NoError(t, err)
		require.Equal(t, []string{"billing", "shipping"}, names)
	})

	t.Run("NegativeLimit", func(t *testing.T) {
		_, err := b.store.List(t.Context(), b.pool, dlq.Filter{Limit: -1})
		require.ErrorContains(t, err, "must not be negative")
	})

	t.Run("OwnerAndUnowned", func(t *testing.T) {
		_, err := b.store.List(t.Context(), b.pool, dlq.Filter{Owner: "ann", Unowned: true})
		require.ErrorContains(t, err, `owner "ann" and unowned exclude each other`)
		_, err = b.store.Count(t.Context(), b.pool, dlq.Filter{Owner: "ann", Unowned: true})
		require.ErrorContains(t, err, `owner "ann" and unowned exclude each other`)
	})

	t.Run("LoadUnknown", func(t *testing.T) {
		_, err := b.store.Load(t.Context(), b.pool, 1<<40)
		require.ErrorIs(t, err, dlq.ErrNotFound)
	})
}

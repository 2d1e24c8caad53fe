package main

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/semel-go/semel/outbox"
)

func payment(order, from, to string, amount int64) posting {
	return posting{id: outbox.NewID(), order: order, status: paid, sequence: 1, from: from, to: to, amount: amount}
}

func TestLedger_Book(t *testing.T) {
	t.Parallel()
	b := setup(t)

	require.NoError(t, b.book(t.Context(), []posting{
		payment("order-1", "buyer-1", "seller-1/pending", 100),
		payment("order-2", "buyer-1", "seller-2/pending", 30),
	}))
	require.NoError(t, b.book(t.Context(), []posting{
		{id: outbox.NewID(), order: "order-1", status: settled, sequence: 2, from: "seller-1/pending", to: "seller-1/available", amount: 100},
	}))

	require.Equal(t, []string{"buyer-1 -130 2", "seller-1/available 100 1", "seller-1/pending 0 2", "seller-2/pending 30 1"},
		b.Texts(t, `SELECT concat_ws(' ', id, balance - opening, sequence) FROM accounts WHERE sequence > 0 ORDER BY id COLLATE "C"`))
	require.Equal(t, []string{"order-1 settled 2", "order-2 paid 1"}, b.Texts(t, `SELECT concat_ws(' ', id, status, sequence) FROM orders ORDER BY id`))
	require.Equal(t, []string{
		"EntryPosted buyer-1 1 -100 99999900", "EntryPosted seller-1/pending 1 100 100", "OrderStatusChanged order-1 1 100",
		"EntryPosted buyer-1 2 -30 99999870", "EntryPosted seller-2/pending 1 30 30", "OrderStatusChanged order-2 1 30",
		"EntryPosted seller-1/pending 2 -100 0", "EntryPosted seller-1/available 1 100 100", "OrderStatusChanged order-1 2 100",
	}, b.Texts(t, `
		SELECT concat_ws(' ', type, aggregateid, version, p.payload ->> 'amount', p.payload ->> 'balance')
		FROM semel.outbox AS o
		CROSS JOIN LATERAL (SELECT convert_from(o.payload, 'UTF8')::jsonb AS payload) AS p
		ORDER BY seq`))
}

// What cannot be booked leaves nothing behind, and nobody is told.
func TestLedger_Book_Refuses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		bad  posting
		says string
	}{
		{name: "Overdrawn", bad: payment("order-2", "seller-2/pending", "seller-2/available", 1), says: `account is overdrawn: "seller-2/pending"`},
		{name: "NoAccount", bad: payment("order-2", "buyer-1", "nobody", 1), says: `account "nobody" does not exist`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)

			err := b.book(t.Context(), []posting{payment("order-1", "buyer-1", "seller-1/pending", 100), tt.bad})

			require.ErrorContains(t, err, tt.says)
			require.Zero(t, b.Number(t, `
				SELECT (SELECT count(*) FROM postings) + (SELECT count(*) FROM entries) + (SELECT count(*) FROM orders)
				     + (SELECT count(*) FROM semel.outbox) + (SELECT count(*) FROM accounts WHERE sequence > 0 OR balance <> opening)`))
		})
	}
}

// Many who write to the same few accounts wait for each other, never in a circle,
// and the events of each account are drawn in the order of its entries.
func TestLedger_Book_ManyAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const many, batches, size = 6, 40, 5

	var g errgroup.Group
	for writer := range many {
		g.Go(func() error {
			for batch := range batches {
				var postings []posting
				for i := range size {
					from := 1 + rand.IntN(5)
					to := 1 + (from+rand.IntN(4))%5
					postings = append(postings, payment(fmt.Sprintf("order-%d-%d-%d", writer, batch, i),
						fmt.Sprintf("buyer-%d", from), fmt.Sprintf("buyer-%d", to), 1))
				}
				if err := b.book(t.Context(), postings); err != nil {
					return err
				}
			}
			return nil
		})
	}
	require.NoError(t, g.Wait())

	b.publish(t) // by seq, as relays do
	counted, err := countEvents(t.Context(), b.Pool, b.Name, many*batches*size)
	require.NoError(t, err)
	require.EqualValues(t, many*batches*size, counted.postings)
	require.EqualValues(t, many*batches*size*eventsOfPosting, counted.events)
	require.True(t, result{counts: counted}.OK(), "%+v", counted)
	require.NoError(t, result{counts: counted}.check())
}

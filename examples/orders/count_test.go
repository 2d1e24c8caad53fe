package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The sum of a run must show every way in which it can be wrong.
func TestCountOrders(t *testing.T) {
	t.Parallel()

	// Three interchanges came: one with two orders, one with one, and one that is
	// refused.
	const wellDone = `
		INSERT INTO interchanges (id, partner, orders, warnings) VALUES ('p/1', 'p', 2, '{}'), ('p/2', 'p', 1, '{}');
		INSERT INTO orders (id, partner, number, currency, total, raw, interchange_id)
		SELECT o, 'p', o, 'EUR', 1, '', 'p/1' FROM unnest('{o1,o2,o3}'::text[]) AS o;
		INSERT INTO semel.outbox (id, aggregatetype, aggregateid, type)
		SELECT gen_random_uuid(), 'Order', o, 'OrderReceived' FROM unnest('{o1,o2,o3}'::text[]) AS o;
		INSERT INTO erp_orders (event, order_id, total) SELECT id, aggregateid, 1 FROM semel.outbox;
		INSERT INTO pick_lists (event, order_id, lines) SELECT id, aggregateid, 1 FROM semel.outbox;
		INSERT INTO notifications (event, order_id, text) SELECT id, aggregateid, '' FROM semel.outbox`

	tests := []struct {
		name          string
		plant         string
		lost, doubled int64
	}{
		{name: "NothingWrong", plant: `SELECT 1`},
		{name: "InterchangeGone", plant: `DELETE FROM interchanges WHERE id = 'p/2'`, lost: 1},
		{name: "OrderGone", plant: `DELETE FROM orders WHERE id = 'o1'`, lost: 1},
		{name: "EventGone", plant: `DELETE FROM semel.outbox WHERE aggregateid = 'o1'`, lost: 1},
		{name: "NotInTheERP", plant: `DELETE FROM erp_orders WHERE order_id = 'o2'`, lost: 1},
		{name: "NotPicked", plant: `DELETE FROM pick_lists WHERE order_id = 'o2'`, lost: 1},
		{name: "NotNotified", plant: `DELETE FROM notifications WHERE order_id = 'o3'`, lost: 1},
		{name: "AllGone", plant: `DELETE FROM orders; DELETE FROM semel.outbox; DELETE FROM erp_orders; DELETE FROM pick_lists; DELETE FROM notifications`, lost: 3},
		{name: "InterchangeTwice", plant: `INSERT INTO interchanges SELECT * FROM interchanges WHERE id = 'p/2'`, doubled: 1},
		{name: "OrderTwice", plant: `INSERT INTO orders SELECT * FROM orders WHERE id = 'o1'`, doubled: 1},
		{name: "TwoEvents", plant: `INSERT INTO semel.outbox (id, aggregatetype, aggregateid, type) VALUES (gen_random_uuid(), 'Order', 'o1', 'OrderReceived')`, doubled: 1},
		{name: "TwiceInTheERP", plant: `INSERT INTO erp_orders SELECT * FROM erp_orders WHERE order_id = 'o1'`, doubled: 1},
		{name: "PickedTwice", plant: `INSERT INTO pick_lists SELECT * FROM pick_lists WHERE order_id = 'o1'`, doubled: 1},
		{name: "NotifiedTwice", plant: `INSERT INTO notifications SELECT * FROM notifications WHERE order_id = 'o1'`, doubled: 1},
		{name: "NobodySentIt", plant: `INSERT INTO notifications (event, order_id, text) VALUES ('e', 'o9', '')`, doubled: 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, false)
			b.take(t, "no interchange")
			b.Exec(t, wellDone)
			b.Exec(t, tt.plant)

			sum, err := countOrders(t.Context(), b.Pool, b.Name, came{distinct: 3, orders: []string{"o1", "o2", "o3"}})

			require.NoError(t, err)
			require.Equal(t, tt.lost, sum.lost, "%s", sum)
			require.Equal(t, tt.doubled, sum.doubled, "%s", sum)
			require.Equal(t, tt.lost+tt.doubled == 0, sum.OK(), "%s", sum)
			require.EqualValues(t, 1, sum.refused)
		})
	}
}

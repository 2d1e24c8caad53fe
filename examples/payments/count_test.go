package main

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/examples/internal/programtest"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
	"github.com/semel-go/semel/outbox"
)

const (
	payment1  = `{"data":{"object":{"id":"pi_1","amount":100,"customer":"cus_1","metadata":{"order_id":"ord_1"}}}}`
	payment2  = `{"data":{"object":{"id":"pi_2","amount":30,"customer":"cus_1","metadata":{"order_id":"ord_2"}}}}`
	refund1   = `{"data":{"object":{"id":"ch_1","payment_intent":"pi_1","amount":100,"amount_refunded":100,"customer":"cus_1","metadata":{"order_id":"ord_1"}}}}`
	declined1 = `{"data":{"object":{"id":"pi_1","amount":100,"customer":"cus_1","metadata":{"order_id":"ord_1"}}}}`
)

type testBundle struct {
	programtest.Schema
	in *inbox.Inbox
}

// setup makes the service in a schema of its own.
func setup(t *testing.T) *testBundle {
	t.Helper()
	b := &testBundle{Schema: program.Schema(t, tablesSQL)}
	var err error
	b.in, err = inbox.New(b.Pool, payments, newHandler(b.Name, outbox.NewWriter(b.Name), refuseType), inbox.Config{Schema: b.Name, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	return b
}

func (b *testBundle) process(t *testing.T, id, kind, payload string) handler.Outcome {
	t.Helper()
	return b.processAt(t, id, kind, payload, time.Time{})
}

// processAt handles an event that was made at a time.
func (b *testBundle) processAt(t *testing.T, id, kind, payload string, at time.Time) handler.Outcome {
	t.Helper()
	outcome, err := b.in.Process(t.Context(), &handler.Message{ID: id, Type: kind, Payload: []byte(payload), OccurredAt: at})
	require.NoError(t, err)
	return outcome
}

// everybodyLearns does what the consumers of the events do.
func (b *testBundle) everybodyLearns(t *testing.T) {
	t.Helper()
	for _, table := range []string{"shipments", "invoices"} {
		b.Exec(t, `INSERT INTO `+table+` (event, order_id) SELECT id::text, aggregateid FROM outbox`)
	}
}

// The sum of a run must show every way in which it can be wrong.
func TestCountMessages(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name          string
		plant         string // what goes wrong behind the engine's back
		lost, doubled int64
	}{
		{name: "NothingWrong"},
		{name: "EffectTwice", doubled: 1, plant: `INSERT INTO effects (message, type, order_id, account, amount)
			SELECT message, type, order_id, account, amount FROM effects WHERE message = 'evt_1'`},
		{name: "HandledTwice", doubled: 1, plant: `INSERT INTO effects (message, type, order_id, account, amount)
			SELECT message, type, order_id, account, amount FROM effects WHERE message = 'evt_1';
			UPDATE accounts SET balance = balance + 100; UPDATE orders SET paid = paid + 100 WHERE id = 'ord_1'`},
		{name: "EffectGone", lost: 1, plant: `DELETE FROM effects WHERE message = 'evt_1'`},
		{name: "RecordedNotHandled", lost: 1, plant: `DELETE FROM effects WHERE message = 'evt_2';
			UPDATE accounts SET balance = balance - 30; DELETE FROM orders WHERE id = 'ord_2'`},
		{name: "NeitherRecordedNorHandled", lost: 1, plant: `DELETE FROM effects WHERE message = 'evt_2';
			UPDATE accounts SET balance = balance - 30; DELETE FROM orders WHERE id = 'ord_2';
			DELETE FROM processed_messages WHERE message_text = 'evt_2'`},
		{name: "EventGone", lost: 1, plant: `DELETE FROM outbox WHERE aggregateid = 'ord_1'`},
		{name: "NotShipped", lost: 1, plant: `DELETE FROM shipments WHERE order_id = 'ord_1'`},
		{name: "NotInvoiced", lost: 1, plant: `DELETE FROM invoices WHERE order_id = 'ord_1'`},
		{name: "ShippedTwice", doubled: 1, plant: `INSERT INTO shipments SELECT * FROM shipments WHERE order_id = 'ord_1'`},
		{name: "InvoicedTwice", doubled: 1, plant: `INSERT INTO invoices SELECT * FROM invoices WHERE order_id = 'ord_1'`},
		{name: "TwoEvents", doubled: 1, lost: 0, plant: `WITH another AS (
				INSERT INTO outbox (id, aggregatetype, aggregateid, type, causation_id)
				SELECT gen_random_uuid(), aggregatetype, aggregateid, type, causation_id FROM outbox WHERE aggregateid = 'ord_1' RETURNING id
			), shipped AS (INSERT INTO shipments SELECT id::text, 'ord_1' FROM another)
			INSERT INTO invoices SELECT id::text, 'ord_1' FROM another`},
		{name: "DeadLetterGone", lost: 1, plant: `DELETE FROM dead_letters`},
		{name: "DeadYetHandled", doubled: 1, plant: `INSERT INTO effects (message, type, amount) VALUES ('evt_3', 'x', 0)`},
		{name: "BalanceTwice", doubled: 1, plant: `UPDATE accounts SET balance = balance + 100`},
		{name: "OrderTwice", doubled: 1, plant: `UPDATE orders SET paid = paid + 100 WHERE id = 'ord_1'`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			for range copies {
				b.process(t, "evt_1", "payment_intent.succeeded", payment1)
				b.process(t, "evt_2", "payment_intent.succeeded", payment2)
				b.process(t, "evt_3", "payment_intent.succeeded", "{")
			}
			b.everybodyLearns(t)

			if tt.plant != "" {
				b.Exec(t, tt.plant)
			}

			counted, err := countMessages(t.Context(), b.Pool, b.Name)
			require.NoError(t, err)
			sum := result{produced: 9, distinct: 3, counts: counted}
			require.Equal(t, tt.lost, sum.lost(), "%s", sum)
			require.Equal(t, tt.doubled, sum.doubled, "%s", sum)
			require.Equal(t, tt.plant == "", sum.OK(), "%s", sum)
		})
	}
}

// In whatever order the events of a payment come, the order and the balance end the
// same. Who ships is told unless the order was refunded before.
func TestHandler_AnyOrder(t *testing.T) {
	t.Parallel()

	type step struct {
		id, kind, payload string
		at                int64
		want              handler.Outcome
	}
	declined := step{"evt_0", "payment_intent.payment_failed", declined1, 1, handler.Processed}
	paid := step{"evt_1", "payment_intent.succeeded", payment1, 2, handler.Processed}
	refunded := step{"evt_2", "charge.refunded", refund1, 3, handler.Processed}
	late := func(s step) step { s.want = handler.Superseded; return s }
	again := func(s step) step { s.want = handler.Duplicate; return s }
	unknown := func(s step) step { s.at = 0; return s } // nobody says when it was

	tests := []struct {
		name   string
		steps  []step
		events int
	}{
		{name: "AsItWas", steps: []step{declined, paid, refunded, again(paid), again(refunded), again(declined)}, events: 1},
		{name: "RefundedFirst", steps: []step{refunded, again(refunded), late(paid), again(paid), late(declined)}},
		{name: "DeclinedLast", steps: []step{paid, refunded, late(declined)}, events: 1},
		{name: "NobodySaysWhen", steps: []step{unknown(refunded), unknown(paid), unknown(declined)}, events: 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)

			for _, s := range tt.steps {
				var at time.Time
				if s.at != 0 {
					at = time.Unix(s.at, 0)
				}
				require.Equal(t, s.want, b.processAt(t, s.id, s.kind, s.payload, at), s.id)
			}

			var status string
			var balance, events int
			require.NoError(t, b.Pool.QueryRow(t.Context(),
				`SELECT o.status, a.balance, (SELECT count(*) FROM outbox) FROM orders AS o JOIN accounts AS a ON a.id = o.account`).Scan(&status, &balance, &events))
			require.Equal(t, "refunded", status)
			require.Zero(t, balance)
			require.Equal(t, tt.events, events)
		})
	}
}

func TestHandler_Refuses(t *testing.T) {
	t.Parallel()
	b := setup(t)

	for id, kind := range map[string]string{"evt_1": "payment_intent.succeeded", "evt_2": "charge.refunded", "evt_3": "unheard.of"} {
		require.Equal(t, handler.Dead, b.process(t, id, kind, `{"amount":0}`))
	}
}

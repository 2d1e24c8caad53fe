package main

import (
	"context"
	"crypto/rand"
	"log/slog"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/examples/internal/database"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
	"github.com/semel-go/semel/schema"
)

const (
	payment1 = `{"data":{"object":{"amount":100,"customer":"cus_1","metadata":{"order_id":"ord_1"}}}}`
	payment2 = `{"data":{"object":{"amount":30,"customer":"cus_1","metadata":{"order_id":"ord_2"}}}}`
	refund1  = `{"data":{"object":{"amount_refunded":100,"customer":"cus_1","metadata":{"order_id":"ord_1"}}}}`
)

type testBundle struct {
	pool   *pgxpool.Pool
	schema string
	in     *inbox.Inbox
}

// setup makes the service in a schema of its own.
func setup(t *testing.T, url string) *testBundle {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	b := &testBundle{schema: "semel_payments_test_" + strings.ToLower(rand.Text()[:8])}
	var err error
	b.pool, err = database.NewPool(ctx, url, b.schema, "test", 4)
	require.NoError(t, err)
	t.Cleanup(b.pool.Close)
	_, err = schema.Up(ctx, b.pool, b.schema, 0)
	require.NoError(t, err)
	t.Cleanup(func() {
		_, err := b.pool.Exec(ctx, "DROP SCHEMA "+pgx.Identifier{b.schema}.Sanitize()+" CASCADE")
		require.NoError(t, err)
	})
	b.exec(t, tablesSQL)
	b.in, err = inbox.New(b.pool, consumerName, newHandler(nil), inbox.Config{Schema: b.schema, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	return b
}

func (b *testBundle) exec(t *testing.T, sql string) {
	t.Helper()
	_, err := b.pool.Exec(t.Context(), sql)
	require.NoError(t, err)
}

func (b *testBundle) process(t *testing.T, id, kind, payload string) handler.Outcome {
	t.Helper()
	outcome, err := b.in.Process(t.Context(), &handler.Message{ID: id, Type: kind, Payload: []byte(payload)})
	require.NoError(t, err)
	return outcome
}

// The sum of a run must show every way in which it can be wrong.
func TestCountMessages(t *testing.T) {
	t.Parallel()
	url := withDatabase(t).URL

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
		{name: "DeadLetterGone", lost: 1, plant: `DELETE FROM dead_letters`},
		{name: "DeadYetHandled", doubled: 1, plant: `INSERT INTO effects (message, type, amount) VALUES ('evt_3', 'x', 0)`},
		{name: "BalanceTwice", doubled: 1, plant: `UPDATE accounts SET balance = balance + 100`},
		{name: "OrderTwice", doubled: 1, plant: `UPDATE orders SET paid = paid + 100 WHERE id = 'ord_1'`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, url)
			for range copies {
				b.process(t, "evt_1", "payment_intent.succeeded", payment1)
				b.process(t, "evt_2", "payment_intent.succeeded", payment2)
				b.process(t, "evt_3", "payment_intent.succeeded", "{")
			}

			if tt.plant != "" {
				b.exec(t, tt.plant)
			}

			counted, err := countMessages(t.Context(), b.pool, b.schema)
			require.NoError(t, err)
			sum := result{produced: 9, distinct: 3, counts: counted}
			require.Equal(t, tt.lost, sum.lost(), "%s", sum)
			require.Equal(t, tt.doubled, sum.doubled, "%s", sum)
			require.Equal(t, tt.plant == "", sum.ok(), "%s", sum)
		})
	}
}

// A refund that comes before its payment leaves the order and the balance as
// one that comes after it.
func TestHandler_AnyOrder(t *testing.T) {
	t.Parallel()
	url := withDatabase(t).URL

	paid := func(t *testing.T, b *testBundle) { b.process(t, "evt_1", "payment_intent.succeeded", payment1) }
	refunded := func(t *testing.T, b *testBundle) { b.process(t, "evt_2", "charge.refunded", refund1) }
	tests := []struct {
		name  string
		steps []func(*testing.T, *testBundle)
	}{
		{name: "PaidFirst", steps: []func(*testing.T, *testBundle){paid, refunded, paid, refunded}},
		{name: "RefundedFirst", steps: []func(*testing.T, *testBundle){refunded, refunded, paid, paid}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, url)

			for _, step := range tt.steps {
				step(t, b)
			}

			var status string
			var balance int64
			require.NoError(t, b.pool.QueryRow(t.Context(),
				`SELECT o.status, a.balance FROM orders AS o JOIN accounts AS a ON a.id = o.account`).Scan(&status, &balance))
			require.Equal(t, "refunded", status)
			require.Zero(t, balance)
		})
	}
}

func TestHandler_Refuses(t *testing.T) {
	t.Parallel()
	b := setup(t, withDatabase(t).URL)

	for id, kind := range map[string]string{"evt_1": "payment_intent.succeeded", "evt_2": "charge.refunded", "evt_3": "unheard.of"} {
		require.Equal(t, handler.Dead, b.process(t, id, kind, `{"amount":0}`))
	}
}

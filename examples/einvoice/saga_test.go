package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
	"github.com/semel-go/semel/outbox"
)

const events = `SELECT concat_ws(' ', aggregatetype, aggregateid, type) FROM semel.outbox ORDER BY seq`

// A payment that fails undoes the order: each step a transaction and an event of its
// own, all in one conversation, and each once however often its message comes.
func TestSaga(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name     string
		card     string
		payment  string
		status   string
		events   []string
		requests []string
	}{
		{
			name: "Paid", payment: "PAID", status: "CONFIRMED",
			events: []string{"order o1 OrderConfirmed"}, requests: []string{"INV-o1 100"},
		},
		{
			name: "Declined", card: declined, payment: "FAILED", status: "CANCELLED",
			events:   []string{"order o1 OrderConfirmed", "payment o1 PaymentFailed", "order o1 OrderCancelled"},
			requests: []string{"CN-o1 -100", "INV-o1 100"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			account, _, _ := serveProvider(t, true)
			a, err := newAdapter(b.Pool, b.config(account))
			require.NoError(t, err)
			writer := outbox.NewWriter(b.Name)
			adapter := b.consumer(t, adapterName, handler.Mux(map[string]handler.Func{
				orderConfirmed: a.request(order.invoice), orderCancelled: a.request(order.creditNote),
			}, handler.Skip))
			cashier := b.consumer(t, cashierName, handler.Mux(map[string]handler.Func{orderConfirmed: handler.JSON(cashier{writer}.charge)}, handler.Skip))
			shop := b.consumer(t, erpName, handler.Mux(map[string]handler.Func{paymentFailed: handler.JSON(erp{writer}.cancel)}, handler.Skip))
			o := order{ID: "o1", Customer: "Wolf, Jena", TaxNumber: "DE123", Amount: 100, Card: tt.card}

			for range 2 { // all comes twice
				require.NoError(t, erp{writer}.confirm(t.Context(), b.Pool, o))
				for told, all := 0, 1; told < all; told++ {
					kinds := b.Texts(t, `SELECT type FROM semel.outbox ORDER BY seq`)
					ids := b.Texts(t, `SELECT id::text FROM semel.outbox ORDER BY seq`)
					payloads := b.Texts(t, `SELECT convert_from(payload, 'UTF8') FROM semel.outbox ORDER BY seq`)
					for _, in := range []*inbox.Inbox{adapter, cashier, shop} {
						_, err := in.Process(t.Context(), &handler.Message{ID: ids[told], Type: kinds[told], CorrelationID: o.ID, Payload: []byte(payloads[told])})
						require.NoError(t, err)
					}
					all = len(b.Texts(t, events))
				}
			}

			require.Equal(t, tt.events, b.Texts(t, events))
			require.Equal(t, []string{"o1"}, b.Texts(t, `SELECT DISTINCT correlation_id FROM semel.outbox`))
			require.Equal(t, []string{tt.payment}, b.Texts(t, `SELECT status FROM payments`))
			require.Equal(t, []string{tt.status}, b.Texts(t, `SELECT status FROM orders`))
			require.Equal(t, tt.requests, b.Texts(t, `SELECT number || ' ' || (payload ->> 'amount') FROM invoice_requests ORDER BY number`))
			require.Equal(t, tt.requests, b.Texts(t, `SELECT message_text || ' ' || (convert_from(payload, 'UTF8')::jsonb ->> 'amount') FROM semel.inbox_messages ORDER BY message_text`))
			require.Empty(t, b.Texts(t, `SELECT reason FROM semel.dead_letters`))
		})
	}
}

// An order that is cancelled already, or that never was, is nobody's to cancel.
func TestERP_CancelsNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	shop := b.consumer(t, erpName, handler.JSON(erp{outbox.NewWriter(b.Name)}.cancel))

	outcome, err := shop.Process(t.Context(), &handler.Message{ID: "e1", Payload: []byte(`{"id":"o1"}`)})

	require.NoError(t, err)
	require.Equal(t, handler.Dead, outcome)
	require.Empty(t, b.Texts(t, events))
}

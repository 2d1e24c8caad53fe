package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/dedup"
	"github.com/semel-go/semel/internal/provider"
)

// The sum of a run must show every way in which it can be wrong.
func TestCountOrders(t *testing.T) {
	t.Parallel()

	// o1 has its invoice, o2 was cancelled and has a credit note too, o3 is dead for
	// its tax number, and so is o4, whose credit note waits behind its invoice.
	orders := []order{{ID: "o1"}, {ID: "o2", Card: declined}, {ID: "o3"}, {ID: "o4", Card: declined}}
	const wellDone = `
		INSERT INTO orders (id, customer, tax_number, amount, card, status)
		VALUES ('o1', '', '', 1, '', 'CONFIRMED'), ('o2', '', '', 1, 'declined', 'CANCELLED'),
		       ('o3', '', '', 1, '', 'CONFIRMED'), ('o4', '', '', 1, 'declined', 'CANCELLED');
		INSERT INTO payments VALUES ('o1', 'PAID'), ('o2', 'FAILED'), ('o3', 'PAID'), ('o4', 'FAILED');
		INSERT INTO invoice_requests (order_id, number, payload, status, provider_id)
		VALUES ('o1', 'INV-o1', '{}', 'SENT', 'i1'), ('o2', 'INV-o2', '{}', 'SENT', 'i2'), ('o2', 'CN-o2', '{}', 'SENT', 'i3'),
		       ('o3', 'INV-o3', '{}', 'PENDING', NULL), ('o4', 'INV-o4', '{}', 'PENDING', NULL), ('o4', 'CN-o4', '{}', 'PENDING', NULL);
		INSERT INTO semel.dead_letters (consumer_id, message_id, message_text, reason)
		VALUES (1, gen_random_uuid(), 'INV-o3', 'permanent'), (1, gen_random_uuid(), 'INV-o4', 'permanent');
		INSERT INTO semel.inbox_messages (consumer_id, message_id, message_text) VALUES (1, gen_random_uuid(), 'CN-o4')`
	done := []provider.Entry{
		{Kind: provider.Called, Number: "INV-o1"},
		{Kind: provider.Asked, Number: "INV-o1"},
		{Kind: provider.Called, Number: "INV-o1"},
		{Kind: provider.Made, Number: "INV-o1", ID: "i1"},
		{Kind: provider.Made, Number: "INV-o2", ID: "i2"},
		{Kind: provider.Made, Number: "CN-o2", ID: "i3"},
	}

	tests := []struct {
		name                   string
		plant                  string          // what goes wrong in the tables
		also                   *provider.Entry // at a provider
		missing, lost, doubled int64
	}{
		{name: "NothingWrong"},
		{name: "TwoInvoices", also: &provider.Entry{Kind: provider.Made, Number: "INV-o1", ID: "i4"}, doubled: 1},
		{name: "TwoCreditNotes", also: &provider.Entry{Kind: provider.Made, Number: "CN-o2", ID: "i4"}, doubled: 1},
		{name: "NotesOfNobody", also: &provider.Entry{Kind: provider.Made, Number: "CN-o1", ID: "i4"}, doubled: 1},
		{name: "RequestedTwice", plant: `INSERT INTO invoice_requests SELECT * FROM invoice_requests WHERE number = 'INV-o1'`, doubled: 1},
		{name: "ChargedTwice", plant: `INSERT INTO payments VALUES ('o1', 'PAID')`, doubled: 1},
		{name: "NoInvoice", plant: `DELETE FROM provider_effects WHERE number = 'INV-o1'`, missing: 1},
		{name: "NoInvoiceNorRequest", plant: `DELETE FROM provider_effects WHERE number = 'INV-o1'; DELETE FROM invoice_requests WHERE number = 'INV-o1'`, missing: 1},
		{name: "NoCreditNote", plant: `DELETE FROM provider_effects WHERE number = 'CN-o2'`, lost: 1},
		{name: "NoDeadLetter", plant: `DELETE FROM semel.dead_letters WHERE message_text = 'INV-o3'`, missing: 1},
		{name: "NobodyWaits", plant: `DELETE FROM semel.inbox_messages`, lost: 1},
		{name: "NotKnownToBeSent", plant: `UPDATE invoice_requests SET provider_id = NULL, status = 'PENDING' WHERE number = 'INV-o1'`, lost: 1},
		{name: "KnownAsAnother", plant: `UPDATE invoice_requests SET provider_id = 'i9' WHERE number = 'INV-o1'`, lost: 1},
		{name: "NotRequested", plant: `DELETE FROM invoice_requests WHERE number = 'INV-o2'`, lost: 1},
		{name: "NotConfirmed", plant: `DELETE FROM orders WHERE id = 'o1'`, lost: 1},
		{name: "NotCancelled", plant: `UPDATE orders SET status = 'CONFIRMED' WHERE id = 'o2'`, lost: 1},
		{name: "CancelledForNothing", plant: `UPDATE orders SET status = 'CANCELLED' WHERE id = 'o1'`, lost: 1},
		{name: "NotCharged", plant: `DELETE FROM payments WHERE order_id = 'o1'`, lost: 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.Exec(t, wellDone)
			ledger := done
			if tt.also != nil {
				ledger = append(ledger[:len(ledger):len(ledger)], *tt.also)
			}
			require.NoError(t, storeEffects(t.Context(), b.Pool, map[string][]provider.Entry{variantQuery: ledger}))
			b.Exec(t, tt.plant)

			counted, err := countOrders(t.Context(), b.Pool, b.Name, orders)

			require.NoError(t, err)
			sum := result{counts: counted}
			require.EqualValues(t, 4, sum.orders)
			require.Equal(t, tt.missing, sum.missing, "%s", sum)
			require.Equal(t, tt.lost, sum.lost, "%s", sum)
			require.Equal(t, tt.doubled, sum.doubled, "%s", sum)
			require.Equal(t, tt.missing+tt.lost+tt.doubled == 0, sum.OK(), "%s", sum)
		})
	}
}

// Attempts that an outage cost must show, those of before must not.
func TestAttemptsIn(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	known := began.Add(time.Second)
	before, between, after := began.Add(-time.Second), began.Add(time.Millisecond), known.Add(time.Second)

	tests := []struct {
		name        string
		consumer    string
		attempts    int
		first, last time.Time
		want        int64
	}{
		{name: "Before", consumer: "query", attempts: 5, first: before, last: before},
		{name: "BeforeAndAsItBegan", consumer: "query", attempts: 5, first: before, last: between},
		{name: "AsItBegan", consumer: "query", attempts: 2, first: between, last: between},
		{name: "AsOftenAsOpens", consumer: "query", attempts: 3, first: between, last: between, want: 3},
		{name: "SinceAllKnow", consumer: "keys", attempts: 1, first: after, last: after, want: 1},
		{name: "BeforeAndSinceAllKnow", consumer: "keys", attempts: 4, first: before, last: after, want: 4},
		{name: "Others", attempts: 4, first: after, last: after},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			consumer := erpName
			if tt.consumer != "" {
				consumer = senderPrefix + tt.consumer
			}
			require.NoError(t, dedup.NewStore(b.Name).Register(t.Context(), b.Pool, consumer))
			id := dedup.ConsumerID(consumer)
			b.Exec(t, `INSERT INTO semel.inbox_messages (consumer_id, message_id, attempts, first_failed_at, last_failed_at) VALUES ($1, gen_random_uuid(), $2, $3, $4)`,
				id, tt.attempts, tt.first, tt.last)
			b.Exec(t, `INSERT INTO semel.dead_letters (consumer_id, message_id, message_text, reason, attempts, first_failed_at, last_failed_at) VALUES ($1, gen_random_uuid(), 'x', 'exhausted', $2, $3, $4)`,
				id, tt.attempts, tt.first, tt.last)

			n, err := attemptsIn(t.Context(), b.Pool, b.Name, began, known)

			require.NoError(t, err)
			require.Equal(t, 2*tt.want, n)
			require.Equal(t, n == 0, result{attemptsInOutage: n}.OK())
		})
	}
}

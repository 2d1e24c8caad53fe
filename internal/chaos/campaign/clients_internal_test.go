package campaign

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/internal/chaos/wire"
	"github.com/semel-go/semel/internal/provider"
)

func TestCountInvoices(t *testing.T) {
	t.Parallel()

	made := func(number, id string) provider.Entry {
		return provider.Entry{Kind: provider.Made, Number: number, ID: id}
	}
	called := provider.Entry{Kind: provider.Called, Number: numberOf(0)}
	entries := []provider.Entry{called, called, made(numberOf(0), "a"), made(numberOf(1), "b")}
	receipts := []receipt{{"m0", numberOf(0), "a"}, {"m1", numberOf(1), "b"}}

	tests := []struct {
		name     string
		entries  []provider.Entry
		receipts []receipt
		dead     []deadLetter
		lost     int
		doubled  int
	}{
		{name: "Well", entries: entries, receipts: receipts},
		{name: "NoInvoice", entries: entries[:3], receipts: receipts, lost: 1},
		{name: "NoRow", entries: entries, receipts: receipts[:1], lost: 1},
		{name: "Nothing", lost: 2},
		{name: "OtherRow", entries: entries, receipts: []receipt{receipts[0], {"m1", numberOf(1), "a"}}, lost: 1},
		{name: "OtherNumber", entries: entries, receipts: []receipt{receipts[0], {"m1", numberOf(0), "b"}}, lost: 1},
		{name: "Dead", entries: entries[:3], receipts: receipts[:1], dead: []deadLetter{{Message: "m1", Reason: "call_unknown"}}, lost: 1},
		{name: "DeadThoughDone", entries: entries, receipts: receipts, dead: []deadLetter{{Message: "m1", Reason: "crashed"}}, lost: 1},
		{name: "TwoInvoices", entries: append(entries[:4:4], made(numberOf(1), "c")), receipts: receipts, doubled: 1},
		{name: "TwoRows", entries: entries, receipts: append(receipts[:2:2], receipts[1]), doubled: 1},
		{name: "InvoiceOfNobody", entries: append(entries[:4:4], made("I-7", "c")), receipts: receipts, doubled: 1},
		{name: "RowOfNobody", entries: entries, receipts: append(receipts[:2:2], receipt{"m7", "I-7", "c"}), doubled: 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			tally := countInvoices([]string{"m0", "m1"}, tt.entries, tt.receipts, tt.dead)

			require.Equal(t, tt.lost, tally.Lost, tally.Notes)
			require.Equal(t, tt.doubled, tally.Doubled, tally.Notes)
			require.Equal(t, tt.lost+tt.doubled > 0, len(tally.Notes) > 0)
		})
	}
}

// Calls have points of their own, and share the kills with the others.
func TestPlan_Calls(t *testing.T) {
	t.Parallel()

	both := append(wire.Brokers(), wire.Calls)
	groups := len(wire.Points())*len(wire.Brokers()) + len(wire.CallPoints())
	require.Equal(t, groups, Config{Brokers: both}.Groups())
	require.Equal(t, 1, Config{Brokers: both, Points: []wire.Point{wire.AfterSend}}.Groups(), "relays meet it too, consumers do not")
	require.Zero(t, Config{Brokers: []wire.Broker{wire.Calls}, Points: []wire.Point{wire.AfterCommit}}.Groups())
	for _, s := range (Config{Kills: 5 * groups, Brokers: both}).withDefaults().plan() {
		require.Equal(t, 5, s.kills, "%s on %s", s.point, s.broker)
	}
}

// A proof in which the provider was never called twice for one effect proves nothing.
func TestResult_CalledOnce(t *testing.T) {
	t.Parallel()

	r := Result{spec: spec{broker: wire.Calls, point: wire.AfterSend}, Calls: 7, Effects: 7}
	require.ErrorContains(t, r.err(), "after-send on calls: 7 calls for 7 effects: nothing was called twice")
	r.Calls++
	require.NoError(t, r.err())
	require.Equal(t, "kills=0 redelivered=0 lost=0 doubled=0 reordered=0 calls=8 effects=7", r.numbers())
}

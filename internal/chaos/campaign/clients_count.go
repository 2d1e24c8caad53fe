package campaign

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/semel-go/semel/internal/provider"
	"github.com/semel-go/semel/schema"
)

//go:embed queries/receipts.sql
var receiptsSQL string

// receipt is what a handler noted.
type receipt struct{ Message, Number, Invoice string }

// count counts at the provider and here, and asks neither the provider nor the
// ledger of calls.
func (g *clients) count(ctx context.Context) (t Tally, calls, effects int, err error) {
	entries, err := provider.Read(g.ledger)
	if err != nil {
		return t, 0, 0, err
	}
	var receipts []receipt
	var dead []deadLetter
	err = errors.Join(
		collect(ctx, g.store.pool, schema.Qualify(receiptsSQL, g.name), &receipts),
		collect(ctx, g.store.pool, schema.Qualify(deadLettersSQL, g.name), &dead),
	)
	if err != nil {
		return t, 0, 0, fmt.Errorf("read the receipts in schema %q: %w", g.name, err)
	}
	ids := make([]string, len(g.sent))
	for i, m := range g.sent {
		ids[i] = m.ID
	}
	longest := time.Duration(0)
	for _, e := range entries {
		switch e.Kind {
		case provider.Called:
			calls++
			longest = max(longest, e.Waited)
		case provider.Made:
			effects++
		}
	}
	g.log("the provider died %d times, and a call waited %s there at most", g.provider.Deaths(), longest.Round(time.Millisecond))
	return countInvoices(ids, entries, receipts, dead), calls, effects, nil
}

// countInvoices wants of each message one invoice at the provider, and one row that
// says which. Nobody is asked whether a call was done: both kinds of provider can
// tell.
func countInvoices(sent []string, entries []provider.Entry, receipts []receipt, dead []deadLetter) (t Tally) {
	made := map[string][]string{} // invoices by number
	for _, e := range entries {
		if e.Kind == provider.Made {
			made[e.Number] = append(made[e.Number], e.ID)
		}
	}
	noted := map[string][]receipt{}
	for _, r := range receipts {
		noted[r.Message] = append(noted[r.Message], r)
	}
	reasons := map[string]string{}
	for _, d := range dead {
		reasons[d.Message] = d.Reason
	}
	for n, id := range sent {
		number := numberOf(n)
		invoices, rows := made[number], noted[id]
		switch {
		case reasons[id] != "":
			t.Lost++
			t.note("lost: %s is dead, reason %s, with %d invoices and %d rows", id, reasons[id], len(invoices), len(rows))
		case len(invoices) == 0 || len(rows) == 0:
			t.Lost++
			t.note("lost: %s has %d invoices at the provider and %d rows here: %s", id, len(invoices), len(rows), story(entries, number))
		case rows[0].Number != number || !slices.Contains(invoices, rows[0].Invoice):
			t.Lost++
			t.note("lost: %s has invoice %s, and its row says %s", id, invoices[0], rows[0].Invoice)
		}
		if more := max(len(invoices)-1, 0) + max(len(rows)-1, 0); more > 0 {
			t.Doubled += more
			t.note("doubled: %s has %d invoices at the provider and %d rows here: %s", id, len(invoices), len(rows), story(entries, number))
		}
		delete(made, number)
		delete(noted, id)
	}
	for number, invoices := range made {
		t.Doubled += len(invoices)
		t.note("%d invoices that nobody wanted: %q", len(invoices), number)
	}
	for id, rows := range noted {
		t.Doubled += len(rows)
		t.note("%d rows of a message that was never sent: %q", len(rows), id)
	}
	return t
}

// slow is what a provider is that stands still.
const slow = 100 * time.Millisecond

// story is what the provider saw of a number, and when.
func story(entries []provider.Entry, number string) string {
	var parts []string
	var first time.Time
	for _, e := range entries {
		if e.Number != number {
			continue
		}
		if first.IsZero() {
			first = e.At
		}
		parts = append(parts, strings.TrimSpace(fmt.Sprintf("%s %s %s", e.At.Sub(first).Round(time.Millisecond), e.Kind, e.Fault)))
		if e.Waited > slow {
			parts = append(parts, fmt.Sprintf("had waited %s", e.Waited.Round(time.Millisecond)))
		}
	}
	return strings.Join(parts, ", ")
}

package main

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/examples/internal/example"
	"github.com/semel-go/semel/internal/provider"
)

// report tells a person what was asked for and what became of it, from the tables
// and the providers' ledger files, and ends with the RESULT line.
func (r *run) report(ctx context.Context) error {
	res := result{attemptsInOutage: r.attemptsInOutage}
	r.providers.stop() // late work counts too
	ledgers, err := r.providers.entries()
	if err != nil {
		return err
	}
	if err := storeEffects(ctx, r.Pool, ledgers); err != nil {
		return err
	}
	if res.counts, err = countOrders(ctx, r.Pool, r.Schema, r.orders); err != nil {
		return err
	}
	letters, err := dlq.NewStore(r.Schema).List(ctx, r.Pool, dlq.Filter{State: dlq.Open})
	if err != nil {
		return err
	}

	fmt.Fprintln(r.Out, "\nWhat the providers have written down")
	for _, a := range r.providers.accounts {
		r.tellProvider(a, ledgers[a.Name])
	}
	r.Table("What became of the orders",
		example.Count(res.orders, "orders"),
		example.Count(res.invoices, "have an invoice"),
		example.Count(res.notes, "were cancelled, as their payment failed, and have a credit note too"),
		example.Count(res.repeated, "documents took more than one call"),
		example.Count(r.kills, "senders killed with SIGKILL"),
		example.Count(res.dead, "dead letters: in front of a person"),
		example.Count(r.attemptsInOutage, "attempts were spent on the maintenance"),
		example.Count(res.missing, "missing"),
		example.Count(res.lost, "lost"),
		example.Count(res.doubled, "doubled"),
	)
	r.tellLetters(letters)
	return r.Conclude(ctx, res)
}

// tellProvider tells what one provider got and did: more calls than effects.
func (r *run) tellProvider(a account, entries []provider.Entry) {
	kinds, faults := map[provider.Kind]int{}, map[provider.Fault]int{}
	for _, e := range entries {
		kinds[e.Kind]++
		faults[e.Fault]++
	}
	keys := "no idempotency keys"
	if a.Keys {
		keys = "idempotency keys"
	}
	fmt.Fprintf(r.Out, "  %s, which has %s: %d calls and %d questions, %d effects, %d deaths\n    it did", a.Name, keys,
		kinds[provider.Called], kinds[provider.Asked], kinds[provider.Made], r.providers.kept[a.Name].Deaths())
	for _, fault := range append(provider.AllFaults(), provider.Maintenance) {
		if n := faults[fault]; n > 0 {
			fmt.Fprintf(r.Out, " %s %d", fault, n)
		}
	}
	fmt.Fprintln(r.Out)
}

// tellLetters tells what waits for a person, as "semel dlq list" does.
func (r *run) tellLetters(letters []dlq.Letter) {
	if len(letters) == 0 {
		return
	}
	fmt.Fprintln(r.Out, "\nDead letters")
	w := tabwriter.NewWriter(r.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "  ID\tMESSAGE\tREASON\tATTEMPTS\tCORRELATION\tOWNER\tCONSUMER\tERROR")
	for _, l := range letters {
		text := strings.Join(strings.Fields(strings.Join(l.Errors[:min(1, len(l.Errors))], "")), " ")
		fmt.Fprintf(w, "  %d\t%s\t%s\t%d\t%s\t%s\t%s\t%.110s\n", l.ID, l.Message.ID, l.Reason, l.Attempts, l.Message.CorrelationID, l.Owner, l.Consumer, text)
	}
	_ = w.Flush()
}

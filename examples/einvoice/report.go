package main

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/internal/provider"
)

// report tells a person what was asked for and what became of it, from the tables
// and the providers' ledger files, and ends with the RESULT line.
func (r *run) report(ctx context.Context) (result, error) {
	res := result{attemptsInOutage: r.attemptsInOutage}
	r.providers.stop() // late work counts too
	ledgers, err := r.providers.entries()
	if err != nil {
		return res, err
	}
	if err := storeEffects(ctx, r.pool, ledgers); err != nil {
		return res, err
	}
	if res.counts, err = countOrders(ctx, r.pool, r.name, r.orders); err != nil {
		return res, err
	}
	letters, err := dlq.NewStore(r.name).List(ctx, r.pool, dlq.Filter{State: dlq.Open})
	if err != nil {
		return res, err
	}

	w := tabwriter.NewWriter(r.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(n int64, format string, args ...any) {
		fmt.Fprintf(w, "%d\t  %s\n", n, fmt.Sprintf(format, args...))
	}
	fmt.Fprintln(r.out, "\nWhat the providers have written down")
	for _, a := range r.providers.accounts {
		r.tellProvider(a, ledgers[a.Name])
	}
	fmt.Fprintln(r.out, "\nWhat became of the orders")
	row(res.orders, "orders")
	row(res.invoices, "have an invoice")
	row(res.notes, "were cancelled, as their payment failed, and have a credit note too")
	row(res.repeated, "documents took more than one call")
	row(int64(r.kills), "senders killed with SIGKILL")
	row(res.dead, "dead letters: in front of a person")
	row(r.attemptsInOutage, "attempts were spent on the maintenance")
	row(res.missing, "missing")
	row(res.lost, "lost")
	row(res.doubled, "doubled")
	_ = w.Flush() // to a buffer that our caller made; a broken pipe is no failure

	r.tellLetters(letters)
	r.howToLook()
	fmt.Fprintf(r.out, "\n%s\n", res)
	return res, nil
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
	fmt.Fprintf(r.out, "  %s, which has %s: %d calls and %d questions, %d effects, %d deaths\n    it did", a.Name, keys,
		kinds[provider.Called], kinds[provider.Asked], kinds[provider.Made], r.providers.kept[a.Name].Deaths())
	for _, fault := range append(provider.AllFaults(), provider.Maintenance) {
		if n := faults[fault]; n > 0 {
			fmt.Fprintf(r.out, " %s %d", fault, n)
		}
	}
	fmt.Fprintln(r.out)
}

// tellLetters tells what waits for a person, as "semel dlq list" does.
func (r *run) tellLetters(letters []dlq.Letter) {
	if len(letters) == 0 {
		return
	}
	fmt.Fprintln(r.out, "\nDead letters")
	w := tabwriter.NewWriter(r.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "  ID\tMESSAGE\tREASON\tATTEMPTS\tCORRELATION\tOWNER\tCONSUMER\tERROR")
	for _, l := range letters {
		text := strings.Join(strings.Fields(strings.Join(l.Errors[:min(1, len(l.Errors))], "")), " ")
		fmt.Fprintf(w, "  %d\t%s\t%s\t%d\t%s\t%s\t%s\t%.110s\n", l.ID, l.Message.ID, l.Reason, l.Attempts, l.Message.CorrelationID, l.Owner, l.Consumer, text)
	}
	_ = w.Flush()
}

// howToLook says how to look at the tables, and at what is in the dead letters.
func (r *run) howToLook() {
	switch {
	case !r.keep:
		fmt.Fprintln(r.out, "\nTo look at the tables: go run ./examples/einvoice -keep")
		return
	case r.server.Own:
		fmt.Fprintf(r.out, "\nThe tables are in schema %s until Ctrl-C. In another terminal:\n\n  export DATABASE_URL='%s'\n", r.name, r.server.URL)
	default:
		fmt.Fprintf(r.out, "\nThe tables stay in schema %s of the database that DATABASE_URL names:\n\n", r.name)
	}
	fmt.Fprintf(r.out, "  go run ./cmd/semel dlq list -schema %[1]s\n  go run ./cmd/semel calls list -state all -schema %[1]s\n", r.name)
	if !r.server.Own {
		fmt.Fprintf(r.out, "  psql \"$DATABASE_URL\" -c 'DROP SCHEMA %s CASCADE'   # when you are done\n", r.name)
	}
}

package main

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"unicode"
)

// report tells a person what came in and what happened to it, from the tables,
// and ends with the RESULT line.
func (r *run) report(ctx context.Context) (result, error) {
	res := result{produced: r.input.tally.produced, distinct: r.input.tally.distinct, refused: r.provider.refused}
	var err error
	if res.counts, err = countMessages(ctx, r.pool, r.name); err != nil {
		return res, err
	}
	letters, err := listDeadLetters(ctx, r.pool, r.name)
	if err != nil {
		return res, err
	}
	first, refunded, err := refundsFirst(ctx, r.pool, r.name)
	if err != nil {
		return res, err
	}

	w := tabwriter.NewWriter(r.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(n int64, text string) { fmt.Fprintf(w, "%d\t  %s\n", n, text) }
	fmt.Fprintln(r.out, "\nWhat came in")
	row(res.produced, "callbacks, signed by the provider")
	row(res.distinct, "different ones")
	row(res.produced-res.distinct, "further copies of them")
	if r.input.malformed > 0 {
		row(r.input.malformed, "lines that are no message")
	}
	if r.input.empty > 0 {
		row(r.input.empty, "empty lines, passed over")
	}
	row(r.provider.repeated.Load(), "sent once more, since no answer came")
	row(res.refused, "forged, and refused")
	row(int64(r.kills), fmt.Sprintf("processes killed, in the middle of %d transactions", r.torn))
	_ = w.Flush() // to a buffer that our caller made; a broken pipe is no failure

	fmt.Fprintln(r.out, "\nWhat happened to it")
	row(res.handled, "handled: order, balance, event and the record that it was, in one transaction")
	row(res.superseded, "superseded: something newer of the payment had been booked")
	row(res.dead, "dead letters: in front of a person, nothing booked")
	row(first, fmt.Sprintf("orders refunded before their payment came; %d of them stayed so", refunded))
	row(res.shipped, "orders shipped, by a consumer of the events")
	row(res.invoiced, "invoices written, by another")
	row(res.lost(), "lost")
	row(res.doubled, "doubled")
	_ = w.Flush()

	if len(letters) > 0 {
		fmt.Fprintln(r.out, "\nDead letters by reason")
		w := tabwriter.NewWriter(r.out, 0, 0, 2, ' ', 0)
		for _, d := range letters {
			fmt.Fprintf(w, "%6d  %s\tfor example %s\t%s\n", d.Count, d.Reason, shorten(d.Example, 40), shorten(d.Error, 110))
		}
		_ = w.Flush()
	}
	r.howToLook()
	fmt.Fprintf(r.out, "\n%s\n", res)
	return res, nil
}

// howToLook says how to look at the tables, and at what is in the dead letters.
func (r *run) howToLook() {
	switch {
	case !r.keep:
		fmt.Fprintln(r.out, "\nTo look at the tables: go run ./examples/payments -keep")
		return
	case r.server.Own:
		fmt.Fprintf(r.out, "\nThe tables are in schema %s until Ctrl-C. In another terminal:\n\n  export DATABASE_URL='%s'\n", r.name, r.server.URL)
	default:
		fmt.Fprintf(r.out, "\nThe tables stay in schema %s of the database that DATABASE_URL names:\n\n", r.name)
	}
	fmt.Fprintf(r.out, "  go run ./cmd/semel dlq list -schema %[1]s\n  psql \"$DATABASE_URL\" -c 'SELECT * FROM %[1]s.processed LIMIT 10'\n", r.name)
	if !r.server.Own {
		fmt.Fprintf(r.out, "  psql \"$DATABASE_URL\" -c 'DROP SCHEMA %s CASCADE'   # when you are done\n", r.name)
	}
}

// shorten cuts text from outside for a table. A terminal obeys control
// characters; a person only reads.
func shorten(text string, limit int) string {
	runes := []rune(strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, text))
	if len(runes) > limit {
		return string(runes[:limit-3]) + "..."
	}
	return string(runes)
}

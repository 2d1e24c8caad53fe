package main

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
)

// report tells a person what came in and what happened to it, from the tables,
// and ends with the RESULT line.
func (r *run) report(ctx context.Context) (result, error) {
	res := result{produced: r.input.tally.produced, distinct: r.input.tally.distinct}
	var err error
	if res.counts, err = countMessages(ctx, r.pool, r.name); err != nil {
		return res, err
	}
	letters, err := listDeadLetters(ctx, r.pool, r.name)
	if err != nil {
		return res, err
	}
	first, wrong, err := refundsFirst(ctx, r.pool)
	if err != nil {
		return res, err
	}

	w := tabwriter.NewWriter(r.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(n int64, text string) { fmt.Fprintf(w, "%d\t  %s\n", n, text) }
	fmt.Fprintln(r.out, "\nWhat came in")
	row(res.produced, "messages")
	row(res.distinct, "different ones")
	row(res.produced-res.distinct, "further copies of them")
	row(r.input.malformed, "lines that are no message")
	if r.input.empty > 0 {
		row(r.input.empty, "empty lines, passed over")
	}
	row(int64(r.kills), fmt.Sprintf("consumer processes killed, with %d messages in flight", r.torn))
	_ = w.Flush() // to a buffer that our caller made; a broken pipe is no failure

	fmt.Fprintln(r.out, "\nWhat happened to it")
	row(res.handled, "handled: order, balance and the record that it was, in one transaction")
	row(res.dead, "dead letters: in front of a person, nothing booked")
	row(first, fmt.Sprintf("orders refunded before they were paid, %d of them ended wrong", wrong))
	row(res.lost(), "lost")
	row(res.doubled, "doubled")
	_ = w.Flush()

	if len(letters) > 0 {
		fmt.Fprintln(r.out, "\nDead letters by reason")
		w := tabwriter.NewWriter(r.out, 0, 0, 2, ' ', 0)
		for _, d := range letters {
			fmt.Fprintf(w, "%6d  %s\tfor example %s\t%s\n", d.Count, d.Reason, shorten(strings.TrimSpace(d.Message), 40), shorten(d.Error, 110))
		}
		_ = w.Flush()
		if !r.keep {
			fmt.Fprintln(r.out, "\nTo look at them: go run ./examples/payments -keep, then semel dlq list")
		}
	}
	fmt.Fprintf(r.out, "\n%s\n", res)
	return res, nil
}

// shorten cuts text for a table.
func shorten(text string, limit int) string {
	if text == "" {
		return "(no id)"
	}
	if runes := []rune(text); len(runes) > limit {
		return string(runes[:limit-3]) + "..."
	}
	return text
}

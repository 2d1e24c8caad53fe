package main

import (
	"context"
	"fmt"
	"text/tabwriter"

	"github.com/semel-go/semel/examples/internal/example"
)

// report tells a person what came in and what happened to it, from the tables,
// and ends with the RESULT line.
func (r *run) report(ctx context.Context) error {
	res := result{produced: r.input.tally.produced, distinct: r.input.tally.distinct, refused: r.provider.refused}
	var err error
	if res.counts, err = countMessages(ctx, r.Pool, r.Schema); err != nil {
		return err
	}
	letters, err := listDeadLetters(ctx, r.Pool, r.Schema)
	if err != nil {
		return err
	}
	first, refunded, err := refundsFirst(ctx, r.Pool, r.Schema)
	if err != nil {
		return err
	}

	came := []example.Row{
		example.Count(res.produced, "callbacks, signed by the provider"),
		example.Count(res.distinct, "different ones"),
		example.Count(res.produced-res.distinct, "further copies of them"),
	}
	if r.input.malformed > 0 {
		came = append(came, example.Count(r.input.malformed, "lines that are no message"))
	}
	if r.input.empty > 0 {
		came = append(came, example.Count(r.input.empty, "empty lines, passed over"))
	}
	r.Table("What came in", append(came,
		example.Count(r.provider.repeated.Load(), "sent once more, since no answer came"),
		example.Count(res.refused, "forged, and refused"),
		example.Count(r.kills, "processes killed, in the middle of %d transactions", r.torn),
	)...)
	r.Table("What happened to it",
		example.Count(res.handled, "handled: order, balance, event and the record that it was, in one transaction"),
		example.Count(res.superseded, "superseded: something newer of the payment had been booked"),
		example.Count(res.dead, "dead letters: in front of a person, nothing booked"),
		example.Count(first, "orders refunded before their payment came; %d of them stayed so", refunded),
		example.Count(res.shipped, "orders shipped, by a consumer of the events"),
		example.Count(res.invoiced, "invoices written, by another"),
		example.Count(res.lost(), "lost"),
		example.Count(res.doubled, "doubled"),
	)
	if len(letters) > 0 {
		fmt.Fprintln(r.Out, "\nDead letters by reason")
		w := tabwriter.NewWriter(r.Out, 0, 0, 2, ' ', 0)
		for _, d := range letters {
			fmt.Fprintf(w, "%6d  %s\tfor example %s\t%s\n", d.Count, d.Reason, example.Shorten(d.Example, 40), example.Shorten(d.Error, 110))
		}
		_ = w.Flush()
	}
	return r.Conclude(ctx, res)
}

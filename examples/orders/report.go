package main

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/examples/internal/example"
)

// report tells a person what came in and what became of it, from the tables, and ends
// with the RESULT line.
func (r *run) report(ctx context.Context) error {
	came, err := countInput(ctx, r.Pool, r.files, r.lenient)
	if err != nil {
		return err
	}
	res, err := countOrders(ctx, r.Pool, r.Schema, came)
	if err != nil {
		return err
	}
	letters, err := dlq.NewStore(r.Schema).List(ctx, r.Pool, dlq.Filter{State: dlq.Open})
	if err != nil {
		return err
	}
	r.Table("What came in",
		example.Count(came.files, "files"),
		example.Count(came.distinct, "different interchanges"),
		example.Count(len(came.orders), "orders in those of them that are in order"),
		example.Count(r.kills, "processes killed with SIGKILL"),
	)
	r.Table("What became of it",
		example.Count(res.accepted, "interchanges accepted: their orders, events and the record that they came in one transaction"),
		example.Count(res.refused, "refused: in front of a person, as they came, with what is wrong"),
		example.Count(res.orders, "orders"),
		example.Count(res.erp, "in the ERP"),
		example.Count(res.warehouse, "in the warehouse"),
		example.Count(res.notified, "notifications"),
		example.Count(res.others, "events in the dead letters of these three"),
		example.Count(res.lost, "lost"),
		example.Count(res.doubled, "doubled"),
	)
	r.tellLetters(letters)
	if err := r.tellWarnings(ctx); err != nil {
		return err
	}
	return r.Conclude(ctx, res)
}

// tellLetters tells what was refused, as "semel dlq list" does.
func (r *run) tellLetters(letters []dlq.Letter) {
	if len(letters) == 0 {
		return
	}
	fmt.Fprintln(r.Out, "\nRefused")
	w := tabwriter.NewWriter(r.Out, 0, 0, 2, ' ', 0)
	for _, l := range letters {
		text := strings.Join(l.Errors[:min(1, len(l.Errors))], "")
		fmt.Fprintf(w, "  %s\t%s\t%s\t%s\n", example.Shorten(l.Message.Source, 20), example.Shorten(l.Message.CorrelationID, 24), l.Reason, example.Shorten(text, 150))
	}
	_ = w.Flush()
}

// tellWarnings tells what a lenient intake has let pass.
func (r *run) tellWarnings(ctx context.Context) error {
	rows, err := r.Pool.Query(ctx, `SELECT id, unnest(warnings) FROM interchanges ORDER BY id LIMIT 20`)
	if err == nil {
		var id, warning string
		_, err = pgx.ForEachRow(rows, []any{&id, &warning}, func() error {
			fmt.Fprintf(r.Out, "\nAccepted with a warning: %s: %s\n", example.Shorten(id, 40), example.Shorten(warning, 150))
			return nil
		})
	}
	if err != nil {
		return fmt.Errorf("look for warnings: %w", err)
	}
	return nil
}

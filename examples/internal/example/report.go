package example

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"unicode"
)

// errWrong ends a run whose sum is not what it must be.
var errWrong = errors.New("the sum is not what it must be: see RESULT")

// Result is the sum of a run.
type Result interface {
	String() string // RESULT key=value ...
	OK() bool       // nothing was lost or doubled
}

// Row is a line of a table: how many there are of what.
type Row struct {
	N    int64
	Text string
}

// Count is a row.
func Count[N int | int64](n N, format string, args ...any) Row {
	return Row{int64(n), fmt.Sprintf(format, args...)}
}

// Table prints rows below a title.
func (r *Run) Table(title string, rows ...Row) {
	fmt.Fprintf(r.Out, "\n%s\n", title)
	w := tabwriter.NewWriter(r.Out, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, row := range rows {
		fmt.Fprintf(w, "%d\t  %s\n", row.N, row.Text)
	}
	_ = w.Flush() // a broken pipe is no failure
}

// Conclude is the end of every report: how to look at the tables, and RESULT. It
// returns an error if the sum is not what it must be. Where they are kept in a
// server of our own, it waits until ctx ends: they are there as long as we are.
func (r *Run) Conclude(ctx context.Context, result Result) error {
	r.howToLook()
	fmt.Fprintf(r.Out, "\n%s\n", result)
	if r.setup.Keep && r.Server.Own {
		<-ctx.Done()
	}
	if !result.OK() {
		return errWrong
	}
	return nil
}

func (r *Run) howToLook() {
	switch {
	case !r.setup.Keep:
		fmt.Fprintf(r.Out, "\nTo look at the tables: go run ./examples/%s -keep\n", r.setup.Name)
		return
	case r.Server.Own:
		fmt.Fprintf(r.Out, "\nThe tables are in schema %s until Ctrl-C. In another terminal:\n\n  export DATABASE_URL='%s'\n", r.Schema, r.Server.URL)
	default:
		fmt.Fprintf(r.Out, "\nThe tables stay in schema %s of the database that DATABASE_URL names:\n\n", r.Schema)
	}
	for _, command := range r.setup.Look {
		fmt.Fprintf(r.Out, "  %s\n", strings.ReplaceAll(command, "SCHEMA", r.Schema))
	}
	if !r.Server.Own {
		fmt.Fprintf(r.Out, "  psql \"$DATABASE_URL\" -c 'DROP SCHEMA %s CASCADE'   # when you are done\n", r.Schema)
	}
}

// Shorten cuts text from outside for a table. A terminal obeys control characters;
// a person only reads.
func Shorten(text string, limit int) string {
	runes := []rune(strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, strings.Join(strings.Fields(text), " ")))
	if len(runes) > limit {
		return string(runes[:limit-3]) + "..."
	}
	return string(runes)
}

package main

import (
	"context"
	"fmt"
	"text/tabwriter"
	"time"
)

// report tells a person what was asked for and what became of it, from the
// tables and the topic, and ends with the RESULT line.
func (r *run) report(ctx context.Context) (result, error) {
	res := result{p99: r.reviewers.all().p99(), down: r.away}
	if err := r.topic.store(ctx, r.pool); err != nil {
		return res, err
	}
	var err error
	if res.counts, err = countApprovals(ctx, r.pool, r.name, r.reviewers.approved); err != nil {
		return res, err
	}

	w := tabwriter.NewWriter(r.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(n int64, format string, args ...any) {
		fmt.Fprintf(w, "%d\t  %s\n", n, fmt.Sprintf(format, args...))
	}
	fmt.Fprintln(r.out, "\nWhat the reviewers were told")
	row(int64(len(r.reviewers.approved)), "approved")
	row(int64(r.reviewers.again), "approved before: a second click, which changed nothing")
	row(int64(r.reviewers.refused), "refused: the payout account is another's, so change and event were rolled back")
	row(int64(r.reviewers.all().late()), "answers took longer than %s", answerLimit)
	_ = w.Flush() // to a buffer that our caller made; a broken pipe is no failure
	fmt.Fprintf(r.out, "  while the broker was there: %s\n", answers(r.reviewers.up))
	fmt.Fprintf(r.out, "  while it was away for %s: %s\n", r.away.Round(time.Second/10), answers(r.reviewers.down))

	fmt.Fprintln(r.out, "\nWhat became of it")
	row(res.approvals, "merchants are approved, each with its event in the same transaction")
	row(r.waited, "events waited for the broker at most")
	row(res.attempts, "attempts were spent on that")
	row(int64(r.kills), "relays killed with SIGKILL")
	row(res.published, "events on the topic")
	row(res.records-res.published, "further copies of them, under the same ids, from killed relays and a broker that went away")
	row(res.configs, "configurations, after %d calls: some answers were lost on the way", res.calls)
	row(res.indexed, "entries in the search index")
	row(res.dead, "dead letters")
	row(res.lost, "lost")
	row(res.doubled, "doubled")
	_ = w.Flush()
	fmt.Fprintf(r.out, "\n%s\n", res)
	return res, nil
}

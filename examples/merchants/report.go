package main

import (
	"context"
	"fmt"
	"time"

	"github.com/semel-go/semel/examples/internal/example"
)

// report tells a person what was asked for and what became of it, from the
// tables and the topic, and ends with the RESULT line.
func (r *run) report(ctx context.Context) error {
	res := result{p99: r.reviewers.all().p99(), down: r.away}
	if err := r.reader.store(ctx, r.Pool); err != nil {
		return err
	}
	var err error
	if res.counts, err = countApprovals(ctx, r.Pool, r.Schema, r.reviewers.approved); err != nil {
		return err
	}

	r.Table("What the reviewers were told",
		example.Count(len(r.reviewers.approved), "approved"),
		example.Count(r.reviewers.again, "approved before: a second click, which changed nothing"),
		example.Count(r.reviewers.refused, "refused: the payout account is another's, so change and event were rolled back"),
		example.Count(r.reviewers.all().late(), "answers took longer than %s", answerLimit),
	)
	fmt.Fprintf(r.Out, "  while the broker was there: %s\n", answers(r.reviewers.up))
	fmt.Fprintf(r.Out, "  while it was away for %s: %s\n", r.away.Round(time.Second/10), answers(r.reviewers.down))
	r.Table("What became of it",
		example.Count(res.approvals, "merchants are approved, each with its event in the same transaction"),
		example.Count(r.waited, "events waited for the broker at most"),
		example.Count(res.attempts, "attempts were spent on that"),
		example.Count(r.kills, "relays killed with SIGKILL"),
		example.Count(res.published, "events on the topic"),
		example.Count(res.records-res.published, "further copies of them, under the same ids, from killed relays and a broker that went away"),
		example.Count(res.configs, "configurations, after %d calls: some answers were lost on the way", res.calls),
		example.Count(res.indexed, "entries in the search index"),
		example.Count(res.dead, "dead letters"),
		example.Count(res.lost, "lost"),
		example.Count(res.doubled, "doubled"),
	)
	return r.Conclude(ctx, res)
}

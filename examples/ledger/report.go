package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/semel-go/semel/examples/internal/example"
)

// report compares the topic with the tables, and tells a person what was booked, what
// became of the events, and what the machine did meanwhile.
func (r *run) report(ctx context.Context) error {
	r.Say("all that is on the topic is read back, and compared with the tables")
	last := r.desk.sum()
	sum, err := r.sum(ctx, last)
	if err != nil {
		return err
	}
	r.Table("What was booked",
		example.Count(sum.postings, "postings, in %d transactions", last.Transactions),
		example.Count(last.Waiting, "more had come and were not booked in time"),
		example.Count(sum.written, "events, each in the transaction of what it tells of"),
		example.Count(sum.off, "postings and accounts do not balance"),
	)
	r.Table("What became of the events",
		example.Count(sum.published, "published, and known to be: half of them within %d ms of being written, 99 of 100 within %d ms, all within %d ms",
			sum.lag[0].Milliseconds(), sum.lag[1].Milliseconds(), sum.lag[2].Milliseconds()),
		example.Count(sum.sendFail(), "attempts failed, or found no broker"),
		example.Count(last.Contended, "times two relays claimed the same shard or event"),
		example.Count(r.kills, "relays killed with SIGKILL"),
		example.Count(sum.events, "events on the topic"),
		example.Count(sum.records-sum.events, "further copies of them, under the same ids"),
		example.Count(sum.reordered, "out of the order of their account or order"),
		example.Count(sum.lost, "lost"),
		example.Count(sum.doubled, "doubled"),
	)
	shares := r.meter.shares(r.Kafka.Own)
	var rows []example.Row
	for _, s := range shares {
		rows = append(rows, example.Count(s.percent, "%s", s.who))
	}
	r.Table(fmt.Sprintf("Who computed, in %% of one processor; there are %d", runtime.NumCPU()), rows...)
	if told := sum.verdict(last, shares, runtime.NumCPU()); told != "" {
		fmt.Fprintf(r.Out, "\n%s\n", told)
	}
	return errors.Join(r.Conclude(ctx, sum), sum.check())
}

// sum sums up from the tables and the topic.
func (r *run) sum(ctx context.Context, last news) (result, error) {
	sum := result{offered: r.rate, length: r.length, failed: last.Failed, kills: r.kills}
	n, err := r.Kafka.Written(ctx, r.Topic)
	if err != nil {
		return sum, err
	}
	records, err := readTopic(ctx, r.Kafka.Brokers, r.Topic, n)
	if err != nil {
		return sum, err
	}
	if err := store(ctx, r.Pool, records); err != nil {
		return sum, err
	}
	sum.counts, err = countEvents(ctx, r.Pool, r.Schema, last.Postings)
	return sum, err
}

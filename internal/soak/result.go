package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// result is what a soak has shown.
type result struct {
	length       time.Duration
	tallies      []tally // by stream
	brokers      []string
	trends       []trend
	disturbances int
}

func (r result) total() (t tally) {
	for _, one := range r.tallies {
		t.add(one)
	}
	return t
}

// write writes the lines for machines.
func (r result) write(w io.Writer) {
	for i, t := range r.tallies {
		fmt.Fprintf(w, "SOAK broker=%s %s\n", r.brokers[i], t)
	}
	for _, t := range r.trends {
		fmt.Fprintln(w, t)
	}
	fmt.Fprintf(w, "SOAK for=%s %s disturbances=%d\n", r.length, r.total(), r.disturbances)
}

// String is the part of a line that counts.
func (t tally) String() string {
	return fmt.Sprintf("sent=%d distinct=%d effects=%d dead=%d duplicates=%d lost=%d doubled=%d reordered_in_key=%d",
		t.sent, t.distinct, t.effects, t.dead, t.duplicates, t.lost, t.doubled, t.reordered)
}

// err says in a sentence each what was not well.
func (r result) err() error {
	var errs []error
	t := r.total()
	if t.lost+t.doubled+t.reordered > 0 {
		errs = append(errs, fmt.Errorf("%d messages were lost, %d doubled, %d reordered within their key:\n  %s",
			t.lost, t.doubled, t.reordered, strings.Join(t.notes, "\n  ")))
	}
	if t.waiting > 0 {
		errs = append(errs, fmt.Errorf("%d messages still wait at the brokers, though nobody works on them any more", t.waiting))
	}
	for _, trend := range r.trends {
		if !trend.flat() {
			errs = append(errs, fmt.Errorf("%s has grown from %.1f to %.1f: the consumer leaks",
				resources[trend.resource].name, trend.first, trend.last))
		}
	}
	return errors.Join(errs...)
}

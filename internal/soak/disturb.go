package main

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"time"
)

//go:embed queries/terminate.sql
var terminateSQL string

// disturbance is something that happens to a consumer in an hour.
type disturbance struct {
	name string
	what string
	do   func(*soaking, context.Context) error
}

// disturbances are all of them, in the order in which they come round.
func disturbances() []disturbance {
	return []disturbance{
		{"terminate", "its database sessions are terminated", (*soaking).terminate},
		{"visit", "another member joins its Kafka group and leaves", (*soaking).visit},
		{"cut", "its connections to the brokers are cut", (*soaking).cutWires},
		{"freeze", "it is frozen (SIGSTOP)", (*soaking).freeze},
		{"restart", "it drains and runs anew", (*soaking).restart},
	}
}

// choose returns those that a comma-separated list names; empty is all.
func choose(list string) ([]disturbance, error) {
	if list == "" {
		return disturbances(), nil
	}
	var chosen []disturbance
	for name := range strings.SplitSeq(list, ",") {
		i := slices.IndexFunc(disturbances(), func(d disturbance) bool { return d.name == name })
		if i < 0 {
			return nil, fmt.Errorf("-disturb: unknown name %q: use some of %s", name, names())
		}
		chosen = append(chosen, disturbances()[i])
	}
	return chosen, nil
}

func names() string {
	var names []string
	for _, d := range disturbances() {
		names = append(names, d.name)
	}
	return strings.Join(names, ",")
}

// disturb lets one thing after another happen, with calm between, until ctx
// ends. What has begun is finished. The first two tenths are left in peace:
// the second is what the last is compared with.
func (r *soaking) disturb(ctx context.Context) error {
	if !pause(ctx, r.cfg.length/5) {
		return nil
	}
	for all := r.cfg.disturbances; ; {
		d := all[r.disturbed%len(all)]
		r.say("%8s -- %s", time.Since(r.began).Round(time.Second), d.what)
		if err := d.do(r, context.WithoutCancel(ctx)); err != nil {
			return fmt.Errorf("disturb the consumer (%s): %w", d.what, err)
		}
		r.disturbed++
		if !pause(ctx, r.cfg.calm()) {
			return nil
		}
	}
}

func (r *soaking) terminate(ctx context.Context) error {
	var n int
	return r.pool.QueryRow(ctx, terminateSQL, r.applications()).Scan(&n)
}

// visit has a second process take half of the partitions for a while.
func (r *soaking) visit(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	visitor, _, err := launch(ctx, setup{Streams: r.places(onKafka), Application: "_visitor"}, r.stderr)
	if err != nil {
		return err
	}
	defer visitor.kill()
	pause(ctx, r.cfg.visit())
	last, err := visitor.finish(ctx)
	r.visitors = append(r.visitors, last.Duplicates[onKafka])
	return err
}

func (r *soaking) cutWires(ctx context.Context) error {
	_, err := r.child.do(ctx, cut)
	return err
}

func (r *soaking) freeze(ctx context.Context) error {
	thaw, err := r.child.frozen()
	if err != nil {
		return err
	}
	defer thaw()
	pause(ctx, r.cfg.freeze())
	return nil
}

func (r *soaking) restart(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	_, err := r.child.do(ctx, restart)
	return err
}

// pause waits and reports false if ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

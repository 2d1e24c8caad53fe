package outbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-go/semel/internal/jitter"
)

// result is the answer for one event.
type result struct {
	event     *event
	err       error // nil: published
	permanent bool
	delay     time.Duration // until the next attempt
}

const (
	// maxNoted is how many events one statement notes at most.
	maxNoted = 1000

	// noteLinger is how long few results wait for others that are about to come:
	// each statement that notes is a commit.
	noteLinger = 20 * time.Millisecond
)

// note writes results down until the relay has ended. What cannot be written is
// tried again: it was confirmed, and nobody else may forget it.
func (r *relayRun) note() {
	backoff := jitter.New(50*time.Millisecond, time.Second)
	failing, refusing := false, false
	for {
		select {
		case <-r.work.Done():
			return
		case <-r.toNote:
		}
		if r.moreToNote() {
			r.rests(noteLinger)
		}
		for results := r.takeResults(); len(results) > 0; results = r.takeResults() {
			err := r.noteAll(results)
			if err == nil {
				if failing {
					r.cfg.Logger.Info("relay notes what is published again", slog.String("relay", r.cfg.Name))
				}
				failing, refusing = false, false
				backoff.Reset()
				continue
			}
			if r.work.Err() != nil {
				return
			}
			switch refused := isRefusal(err); {
			case refused && !refusing:
				r.cfg.Logger.Error("relay cannot note what became of some events: it tries again, and goes on with all others",
					slog.String("relay", r.cfg.Name), slog.Any("error", err))
				refusing = true
			case !refused && !failing:
				r.cfg.Logger.Error("relay cannot note what is published: it tries again; if its lease runs out first, the events are published once more under the same ids",
					slog.String("relay", r.cfg.Name), slog.Any("error", err))
				failing = true
			}
			if r.putBack(results, err) == len(results) { // else others need not wait for these
				r.rests(backoff.NextBackOff())
			}
		}
	}
}

// moreToNote reports whether there are but few results, and others on their way.
func (r *relayRun) moreToNote() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.stopped && len(r.results) < r.cfg.Batch && len(r.inMind) > len(r.results)+len(r.forget)
}

// rests waits for d, at most until the relay has ended.
func (r *relayRun) rests(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.work.Done():
	}
}

func (r *relayRun) takeResults() []result {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := min(len(r.results), maxNoted)
	results := r.results[:n:n]
	r.results = r.results[n:]
	if len(r.results) == 0 {
		r.results = nil
	}
	r.noting = n
	close(r.noted)
	r.noted = make(chan struct{})
	return results
}

// putBack returns the results that are not noted, and counts them. Those that the
// database refuses are left to the next owner where the lease is to go: the shards do not
// stand still for them.
func (r *relayRun) putBack(results []result, cause error) (count int) {
	refused := isRefusal(cause)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, res := range results {
		switch l := r.held.at(res.event.lo); {
		case res.event.noted:
		case refused && (r.stopped || l == nil || l.leaving):
			r.leaveOff(res.event)
		default:
			r.results = append(r.results, res)
			count++
		}
	}
	r.noting = 0
	return count
}

// leaveOff ends an event that was not noted. It is called with mu held.
func (r *relayRun) leaveOff(e *event) {
	r.counters.stale.Add(1)
	r.settle(e)
	if b := r.blocked[e.aggregate]; b != nil && b.seq == e.seq {
		b.unsaved = false
		r.unblock = append(r.unblock, e.aggregate)
	}
}

func (r *relayRun) noteAll(results []result) error {
	published := make([]*event, 0, len(results))
	var locked []*event
	for _, res := range results {
		switch {
		case res.err != nil:
		case res.event.locked:
			locked = append(locked, res.event)
		default:
			published = append(published, res.event)
		}
	}
	if len(published) > 0 {
		err := r.notePublished(published)
		switch {
		case isLocked(err):
			for _, e := range published {
				if !e.noted { // some may be: two epochs are two statements
					locked = append(locked, e)
				}
			}
		case err != nil:
			return err
		}
	}
	refused := r.noteUnlocked(locked)
	if refused != nil && !isRefusal(refused) {
		return refused
	}
	for i := range results {
		if res := &results[i]; res.err != nil && !res.event.noted {
			err := r.noteFailed(res)
			if err != nil && !isRefusal(err) {
				return err
			}
			refused = cmp.Or(refused, err)
		}
	}
	return refused
}

func (r *relayRun) notePublished(events []*event) error {
	ids := make([]*pgtype.UUID, len(events)) // encoded as they are; any other type goes through text
	var los []int16
	var epochs []int64
	var first byLease[*event]
	for i, e := range events {
		switch f := first.at(e.lo); {
		case f == nil:
			first.put(e.lo, e)
			los, epochs = append(los, e.lo), append(epochs, e.epoch)
		case f.epoch != e.epoch: // the lease was lost and taken anew between the two
			if err := r.notePublished(events[:i]); err != nil {
				return err
			}
			return r.notePublished(events[i:])
		}
		ids[i] = &e.id
	}
	sql := r.q.mark
	if r.cfg.Done == Delete {
		sql = r.q.remove
	}
	ctx, cancel := context.WithTimeout(r.work, r.cfg.StatementTimeout)
	defer cancel()
	rows, err := r.byID(ctx, sql, ids, los, epochs, r.id)
	if err != nil {
		return fmt.Errorf("note %d published events: %w", len(events), err)
	}
	if stale := int64(len(events)) - rows; stale > 0 {
		r.counters.stale.Add(stale)
		r.cfg.Logger.Warn("relay published events that it may not note: its lease had run out, or somebody else was done with them; they may be published twice, under the same ids",
			slog.String("relay", r.cfg.Name), slog.Int64("events", stale))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, first := 0, 0; i < len(events); i++ {
		e := events[i]
		r.settle(e)
		if e.retry {
			r.unblock = append(r.unblock, e.aggregate)
		}
		if kind := e.aggregate.kind; i+1 == len(events) || events[i+1].aggregate.kind != kind {
			n := int64(i + 1 - first)
			r.counters.add(kind, func(k *KindStats) { k.Sent += n })
			first = i + 1
		}
	}
	return nil
}

// settle ends an event; the reader forgets it before its next read. It is
// called with mu held.
func (r *relayRun) settle(e *event) {
	e.noted = true
	r.forget = append(r.forget, e)
	if e.retry || r.holding {
		poked(r.poke)
	}
}

func (r *relayRun) noteFailed(res *result) error {
	e := res.event
	ctx, cancel := context.WithTimeout(r.work, r.cfg.StatementTimeout)
	defer cancel()
	r.failing.Lock()
	defer r.failing.Unlock()
	var quarantined bool
	var attempts, inLease int
	err := r.pool.QueryRow(ctx, r.q.fail, &e.id, r.id, e.epoch, storable(describe(res.err)), res.permanent, res.delay, r.cfg.MaxAge).
		Scan(&quarantined, &attempts, &inLease)
	gone := errors.Is(err, pgx.ErrNoRows) // published or discarded by others, or not ours any more
	if err != nil && !gone {
		return fmt.Errorf("note a failed attempt at event %s: %w", e.msg.ID, err)
	}

	r.mu.Lock()
	r.settle(e)
	b := r.blocked[e.aggregate]
	if b != nil && b.seq == e.seq {
		b.unsaved, b.attempts = false, inLease
		switch {
		case gone, quarantined && r.cfg.Quarantine == Continue:
			r.unblock = append(r.unblock, e.aggregate)
		case quarantined:
			b.due = time.Time{}
		default:
			b.due = time.Now().Add(res.delay)
		}
	}
	poked(r.poke)
	r.mu.Unlock()
	if gone {
		r.counters.stale.Add(1)
		return nil
	}
	r.tellFailed(res, quarantined, attempts)
	return nil
}

// tellFailed tells people of a failed attempt that is noted.
func (r *relayRun) tellFailed(res *result, quarantined bool, attempts int) {
	e := res.event
	attrs := []any{
		slog.String("relay", r.cfg.Name), slog.String("event_id", e.msg.ID), slog.String("event_type", e.msg.Type),
		slog.String("aggregate_type", e.aggregate.kind), slog.String("aggregate_id", e.aggregate.id),
		slog.Int("attempts", attempts), slog.Any("error", res.err),
	}
	if !quarantined {
		r.counters.add(e.aggregate.kind, func(k *KindStats) { k.Failed++ })
		r.cfg.Logger.Warn("event could not be published", append(attrs, slog.Duration("retry_in", res.delay))...)
		return
	}
	r.counters.add(e.aggregate.kind, func(k *KindStats) { k.Failed++; k.Quarantined++ })
	r.cfg.Logger.Error("event is in quarantine: a person must decide", attrs...)
	if r.cfg.OnQuarantine != nil {
		r.cfg.OnQuarantine(r.work, Quarantined{Message: e.msg, Attempts: attempts, Err: res.err})
	}
}

// storable is text as the database takes it.
func storable(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "�"), "\x00", "�")
}

package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/semel-go/semel/breaker"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/internal/jitter"
	"github.com/semel-go/semel/internal/msgrow"
)

// publish makes one attempt and sorts its results.
func (r *relayRun) publish(l *lane, batch []*event) {
	done, err := l.breaker.Allow()
	if err != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, e := range batch {
			r.passOver(l, e)
		}
		r.rest(l)
		return
	}
	ctx, cancel := context.WithTimeoutCause(r.work, r.cfg.AttemptTimeout, errAttemptTimeout)
	defer cancel()
	valid, errs := r.validate(ctx, batch)
	msgs := make([]*handler.Message, 0, len(batch))
	for i, e := range batch {
		if valid[i] {
			msgs = append(msgs, e.msg)
		}
	}
	var answers []error
	if len(msgs) > 0 {
		answers = r.ask(ctx, msgs)
	}
	for i := range batch {
		switch {
		case !valid[i]:
		case len(answers) == 0:
			errs[i] = errNoAnswer
		default:
			errs[i], answers = answers[0], answers[1:]
		}
	}
	r.sort(l, batch, errs, done)
}

var (
	errAttemptTimeout = errors.New("attempt timeout")
	errNoAnswer       = errors.New("the publisher gave no answer for this message")

	// errHeldBack is the answer for an event behind one that failed.
	errHeldBack = errors.New("an earlier event of its aggregate failed")
)

// validate decodes what is encoded, in at most half of the attempt's time, and
// asks the user's validator. What follows a refused event of its aggregate is held
// back.
func (r *relayRun) validate(ctx context.Context, batch []*event) (valid []bool, errs []error) {
	ctx, cancel := context.WithTimeout(ctx, r.cfg.AttemptTimeout/2)
	defer cancel()
	valid, errs = make([]bool, len(batch)), make([]error, len(batch))
	refused := make(map[aggregate]bool)
	for i, e := range batch {
		if refused[e.aggregate] {
			errs[i] = errHeldBack
			continue
		}
		errs[i] = r.decode(ctx, e)
		if errs[i] == nil && r.cfg.Validate != nil {
			errs[i] = r.cfg.Validate(e.msg)
		}
		if valid[i] = errs[i] == nil; !valid[i] {
			refused[e.aggregate] = true
		}
	}
	return valid, errs
}

// sort decides on the results of an attempt. Whether the broker did its part is
// told to done.
func (r *relayRun) sort(l *lane, batch []*event, errs []error, done func(bool)) {
	published, away := 0, 0
	behind := make(map[aggregate]bool) // one that failed: their answers say nothing of the broker
	for i, err := range errs {
		switch {
		case err == nil:
			published++
		case isOutage(err) && !behind[batch[i].aggregate]:
			away++
		}
		if err != nil {
			behind[batch[i].aggregate] = true
		}
	}
	done(published > 0 || away == 0) // before mu: it may log
	r.mu.Lock()
	defer r.mu.Unlock()
	if published > 0 {
		l.permanents, l.failures, l.undecoded = 0, 0, 0
		l.pause.Reset()
	}
	r.results = slices.Grow(r.results, len(batch))
	failed := make(map[aggregate]bool) // in this batch
	var last error
	unread := false
	for i, e := range batch {
		err := errs[i]
		if err == nil {
			r.results = append(r.results, result{event: e})
			continue
		}
		switch {
		case failed[e.aggregate] || errors.Is(err, errHeldBack):
			r.passBehind(l, e)
		case isUndecoded(err) && msgrow.IsAway(err):
			if !r.withhold(l, e, err) {
				r.passOver(l, e)
				unread = true
			}
		case isOutage(err) && published == 0:
			last = err
			r.passOver(l, e)
		case isOutage(err):
			r.suspend(e, l.pause.NextBackOff())
		case handler.IsPermanent(err) && published == 0 && l.permanents >= maxPermanents:
			last = errManyPermanents
			r.passOver(l, e)
		case !e.retry && published == 0 && l.failures >= maxFailures:
			last = fmt.Errorf("%w: %w", errManyFailures, err)
			r.passOver(l, e)
		default:
			if !e.retry {
				l.failures++
			}
			permanent := handler.IsPermanent(err)
			if permanent {
				l.permanents++
			}
			attempts := 1
			if b := r.blocked[e.aggregate]; b != nil {
				attempts = b.attempts + 1
			}
			delay := jitter.Draw(r.cfg.RetryDelay, r.cfg.RetryMaxDelay, attempts)
			if asked, ok := handler.RetryDelay(err); ok {
				// What is asked for replaces no pause of ours, and leaves the event most of
				// the time that it has: nobody must ask an event into quarantine.
				delay = max(delay, min(asked, r.cfg.MaxAge/4))
			}
			r.block(e, &block{unsaved: true, attempts: attempts})
			r.results = append(r.results, result{event: e, err: err, permanent: permanent, delay: delay})
		}
		failed[e.aggregate] = true
	}
	if len(failed) > 0 {
		r.sift(l, time.Now())
	}
	if last != nil {
		r.away(l, last)
	} else if unread {
		r.rest(l)
	}
	if len(r.results) > 0 {
		poked(r.toNote)
	}
}

// passBehind drops an event behind one that failed: its aggregate is blocked,
// or its lane is to be read again. It is called with mu held.
func (r *relayRun) passBehind(l *lane, e *event) {
	if r.blocked[e.aggregate] != nil {
		r.drop(e)
		return
	}
	r.passOver(l, e)
}

func (r *relayRun) block(e *event, b *block) {
	b.lo, b.seq, b.id = e.lo, e.seq, e.id
	r.blocked[e.aggregate] = b
}

// suspend holds an aggregate back whose part of the broker is away. It is called
// with mu held.
func (r *relayRun) suspend(e *event, pause time.Duration) {
	r.drop(e)
	due := time.Now().Add(pause)
	switch b := r.blocked[e.aggregate]; {
	case !e.retry:
		r.block(e, &block{passing: true, due: due})
	case b != nil: // its row holds the aggregate as before
		b.due = due
	}
}

// away lets a lane rest whose broker does not do its part. No attempt is spent.
// It is called with mu held.
func (r *relayRun) away(l *lane, err error) {
	r.counters.outages.Add(1)
	if !l.waits(time.Now()) && l.breaker.State() == breaker.Closed {
		r.cfg.Logger.Warn("relay could not publish: the events wait, no attempt is spent",
			slog.String("relay", r.cfg.Name), slog.String("aggregate_type", l.kind), slog.Any("error", err))
	}
	r.rest(l)
}

// rest keeps a lane from publishing for a while. It is called with mu held.
func (r *relayRun) rest(l *lane) {
	l.until = time.Now().Add(l.pause.NextBackOff())
	r.dropQueue(l)
	poked(r.poke)
}

// breakerChanged tells people, once for each outage.
func (r *relayRun) breakerChanged(kind string, from, to breaker.State) {
	attrs := []any{slog.String("relay", r.cfg.Name), slog.String("aggregate_type", kind)}
	switch {
	case from == breaker.Closed:
		r.cfg.Logger.Error("relay cannot publish: the broker is left alone but for single trials, the events wait, no attempt is spent", attrs...)
	case to == breaker.Closed:
		r.cfg.Logger.Info("relay publishes again", attrs...)
	}
}

// isOutage reports an answer that says nothing about the event: the broker is
// away, or did not answer in time.
func isOutage(err error) bool {
	return !handler.IsPermanent(err) && !isUndecoded(err) && (handler.IsUnavailable(err) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, errAttemptTimeout) || errors.Is(err, context.Canceled))
}

// describe is the text of a publisher's error as it is stored.
func describe(err error) string {
	const limit = 4096
	text := fmt.Sprint(err)
	if len(text) > limit {
		text = text[:limit]
	}
	return text
}

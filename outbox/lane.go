package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/semel-go/semel/breaker"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/internal/jitter"
)

// lane is the events of one aggregate type on their way to the publisher. A
// slow topic holds up its own lane and no other.
type lane struct {
	kind    string
	queue   []*event
	running bool
	flying  map[aggregate]bool // unordered publisher: what is unconfirmed
	landed  chan struct{}      // unordered: one place, something was confirmed

	resume int64     // seq; the lane's events from here on were passed over. 0: none
	until  time.Time // it publishes nothing before

	breaker    *breaker.Breaker
	pause      *backoff.ExponentialBackOff
	permanents int // in a row, without a success between
}

// maxPermanents is how many events in a row may go into quarantine without one
// that is published. Then it is rather the broker, or what we may do there,
// than the events: nothing more is spent until something is published again.
const maxPermanents = 10

// errManyPermanents is why a lane waits that would only fill the quarantine.
var errManyPermanents = errors.New("one event after the other is refused for good")

// lane returns the lane of an aggregate type. It is called with mu held.
func (r *relayRun) lane(kind string) *lane {
	l := r.lanes[kind]
	if l == nil {
		l = &lane{
			kind:   kind,
			flying: make(map[aggregate]bool),
			landed: make(chan struct{}, 1),
			pause:  jitter.New(50*time.Millisecond, time.Second),
		}
		l.breaker = breaker.New("outbox "+kind, breaker.Config{OnChange: func(from, to breaker.State) { r.breakerChanged(kind, from, to) }})
		r.lanes[kind] = l
	}
	return l
}

// laneRoom is how many events a lane takes before it is full.
func (r *relayRun) laneRoom() int {
	if r.ordered {
		return 4 * r.cfg.Batch
	}
	return max(r.cfg.Window, r.cfg.Batch)
}

// waits reports whether the lane's broker is left alone for now.
func (l *lane) waits(now time.Time) bool { return now.Before(l.until) }

// startLane sees to it that somebody works on the lane. It is called with mu
// held.
func (r *relayRun) startLane(l *lane) {
	if l.running {
		poked(l.landed) // there may be more to take
		return
	}
	if len(l.queue) == 0 || r.stopped {
		return
	}
	l.running = true
	if r.ordered {
		r.publishing.Go(func() { r.inOrder(l) })
	} else {
		r.publishing.Go(func() { r.inParallel(l) })
	}
}

// inOrder publishes a lane batch by batch, until it is empty.
func (r *relayRun) inOrder(l *lane) {
	for {
		batch := r.takeBatch(l, r.cfg.Batch)
		if len(batch) == 0 {
			return
		}
		r.publish(l, batch)
	}
}

// takeBatch takes events from the front of a lane. None: it is empty, and the
// lane rests.
func (r *relayRun) takeBatch(l *lane, n int) []*event {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sift(l, time.Now())
	n = min(n, len(l.queue))
	batch := slices.Clone(l.queue[:n])
	r.shorten(l, l.queue[n:])
	l.running = n > 0
	return batch
}

// sift drops what may not go out now from the whole queue of a lane: what is
// behind an event that was dropped must not be there any more when its
// aggregate, or its lease, may go on. It is called with mu held.
func (r *relayRun) sift(l *lane, now time.Time) {
	l.queue = slices.DeleteFunc(l.queue, func(e *event) bool {
		sendable := r.sendable(e, now)
		if !sendable {
			r.drop(e)
		}
		return !sendable
	})
	if r.restart {
		poked(r.poke)
	}
}

// sendable reports whether a queued event may still go out. It is called with
// mu held.
func (r *relayRun) sendable(e *event, now time.Time) bool {
	if !r.may(e, now) {
		r.restart = true // should the shard be ours again
		return false
	}
	return e.retry || r.blocked[e.aggregate] == nil
}

// shorten replaces the queue of a lane by what is left of it, and tells the
// reader when there is room again. It is called with mu held.
func (r *relayRun) shorten(l *lane, left []*event) {
	l.queue = left
	if len(left) == 0 {
		l.queue = nil // let go of the memory behind it
	}
	if l.resume != 0 && len(left) <= r.laneRoom()/2 {
		poked(r.poke)
	}
}

// inParallel publishes a lane event by event, many at once, one of each
// aggregate.
func (r *relayRun) inParallel(l *lane) {
	for {
		for _, e := range r.takeFree(l) {
			r.publishing.Go(func() {
				r.publish(l, []*event{e})
				r.mu.Lock()
				delete(l.flying, e.aggregate)
				r.mu.Unlock()
				poked(l.landed)
			})
		}
		r.mu.Lock()
		if len(l.queue) == 0 && len(l.flying) == 0 {
			l.running = false
			r.mu.Unlock()
			return
		}
		r.mu.Unlock()
		<-l.landed // something is unconfirmed, so something will land
	}
}

// takeFree takes the events whose aggregates have none unconfirmed.
func (r *relayRun) takeFree(l *lane) []*event {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sift(l, time.Now())
	var taken []*event
	left := l.queue[:0]
	for _, e := range l.queue {
		if l.flying[e.aggregate] || len(l.flying) >= r.cfg.Window {
			left = append(left, e)
			continue
		}
		l.flying[e.aggregate] = true
		taken = append(taken, e)
	}
	clear(l.queue[len(left):])
	r.shorten(l, left)
	return taken
}

// dropQueue forgets what waits in a lane; the reader finds it again. It is
// called with mu held.
func (r *relayRun) dropQueue(l *lane) {
	for _, e := range l.queue {
		r.passOver(l, e)
	}
	l.queue = nil
}

// passOver puts an event back where it came from: the reader must come to it
// again before any later one of its lane. It is called with mu held.
func (r *relayRun) passOver(l *lane, e *event) {
	r.drop(e)
	if !e.retry {
		l.passed(e.seq)
	}
}

// passed notes that the reader must come back to seq before it takes anything
// of the lane behind it. It is called with mu held.
func (l *lane) passed(seq int64) {
	if l.resume == 0 || seq < l.resume {
		l.resume = seq
	}
}

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
	valid, errs := r.validate(batch)
	msgs := make([]*handler.Message, 0, len(batch))
	for i, e := range batch {
		if valid[i] {
			msgs = append(msgs, e.msg)
		}
	}
	var answers []error
	if len(msgs) > 0 {
		ctx, cancel := context.WithTimeoutCause(r.work, r.cfg.AttemptTimeout, errAttemptTimeout)
		answers = r.ask(ctx, msgs)
		cancel()
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

// validate asks the user's validator. What follows a refused event of its
// aggregate is held back.
func (r *relayRun) validate(batch []*event) (valid []bool, errs []error) {
	valid, errs = make([]bool, len(batch)), make([]error, len(batch))
	refused := make(map[aggregate]bool)
	for i, e := range batch {
		switch {
		case refused[e.aggregate]:
			errs[i] = errHeldBack
			continue
		case r.cfg.Validate != nil:
			errs[i] = r.cfg.Validate(e.msg)
		}
		valid[i] = errs[i] == nil
		refused[e.aggregate] = !valid[i]
	}
	return valid, errs
}

// sort decides on the results of an attempt. Whether the broker did its part is
// told to done.
func (r *relayRun) sort(l *lane, batch []*event, errs []error, done func(bool)) {
	published, away := 0, 0
	for _, err := range errs {
		switch {
		case err == nil:
			published++
		case isOutage(err):
			away++
		}
	}
	done(published > 0 || away == 0) // before mu: it may log
	r.mu.Lock()
	defer r.mu.Unlock()
	if published > 0 {
		l.permanents = 0
		l.pause.Reset()
	}
	failed := make(map[aggregate]bool) // in this batch
	var last error
	for i, e := range batch {
		err := errs[i]
		if err == nil {
			r.results = append(r.results, result{event: e})
			continue
		}
		switch {
		case failed[e.aggregate] || errors.Is(err, errHeldBack):
			r.passBehind(l, e)
		case isOutage(err) && published == 0:
			last = err
			r.passOver(l, e)
		case isOutage(err):
			r.suspend(e, l.pause.NextBackOff())
		case handler.IsPermanent(err) && published == 0 && l.permanents >= maxPermanents:
			last = errManyPermanents
			r.passOver(l, e)
		default:
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
				delay = asked
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
	return !handler.IsPermanent(err) && (handler.IsUnavailable(err) ||
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

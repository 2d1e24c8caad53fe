// Package breaker stops what cannot succeed: after a few failures in a row a
// circuit breaker opens, so that a broker or a service that is away is left
// alone, and found again by single trials.
//
//	err := b.Do(ctx, func(ctx context.Context) error { return client.Charge(ctx, order) })
//
// # States
//
//	closed     all calls go through; Failures in a row, or Refusals, open it
//	open       none does, until RetryIn has passed
//	half-open  one trial does: an answer closes it, a failure opens it for longer
//
// What a call comes to, and what follows while the breaker is closed, or from a trial:
//
//	an answer               counts anew         closes
//	a failure               counts              opens
//	credentials refused     counts, apart       opens if that is why it was open, else closes
//	cancelled by its caller nothing             the next one may try
//	its caller's deadline   a failure, if it    opens
//	                        had Patience
//	panic, Goexit           nothing             opens
//	no answer at all        -                   after TrialTimeout the next one may try
//
// An answer that comes when the breaker has moved on says nothing.
package breaker

import (
	"errors"
	"sync"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/semel-go/semel/internal/jitter"
)

// State is what a breaker does with calls.
type State string

// The states.
const (
	Closed   State = "closed"    // all calls go through
	Open     State = "open"      // none does
	HalfOpen State = "half-open" // one does, to try
)

// maxHold bounds what a dependency may ask for: it is tried now and then.
const maxHold = 5 * time.Minute

// Breaker protects one dependency. Make one with [New]. It is safe for
// concurrent use, and starts no goroutine.
type Breaker struct {
	name string
	cfg  Config

	mu         sync.Mutex                                 // guards what follows
	two        *gobreaker.TwoStepCircuitBreaker[struct{}] // counts and moves; when it may is ours to say
	state      State
	generation uint64 // of the state: who began in an earlier one comes too late
	since      time.Time
	closedAt   time.Time
	notBefore  time.Time // no trial before
	hold       time.Time // nor before this: the dependency asked for it
	trial      *Call     // the one that is out
	futile     int       // trials in a row that did not close it
	refusals   int       // of our credentials in a row, without an answer between
	refused    bool      // that is why it opened
	last       error     // failure
	cause      error
	changed    chan struct{}
	news       []change // not yet told
	telling    bool
	stats      Stats
}

// What gobreaker is told of a call that was not answered.
var (
	errFailed  = errors.New("failed")
	errIgnored = errors.New("says nothing")
)

// New returns a closed breaker. The name is for people.
func New(name string, cfg Config) *Breaker {
	now := time.Now()
	b := &Breaker{
		name: name, cfg: cfg.withDefaults(),
		state: Closed, since: now, closedAt: now, changed: make(chan struct{}),
	}
	b.two = gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		Name:    name,
		Timeout: 1, // notBefore says how long it is open
		ReadyToTrip: func(c gobreaker.Counts) bool {
			return b.refused || c.ConsecutiveFailures >= b.cfg.Failures
		},
		IsExcluded:    func(err error) bool { return errors.Is(err, errIgnored) },
		OnStateChange: func(_ string, from, to gobreaker.State) { b.turn(State(from.String()), State(to.String())) },
	})
	return b
}

// Name is what the breaker was named.
func (b *Breaker) Name() string { return b.name }

// State says what the breaker does now. It stays open until somebody tries.
func (b *Breaker) State() State {
	b.lock()
	defer b.mu.Unlock()
	return b.state
}

// Since is when the state last changed; at first, when the breaker was made.
func (b *Breaker) Since() time.Time {
	b.lock()
	defer b.mu.Unlock()
	return b.since
}

// ClosedAt is when the breaker last closed; if it never opened, when it was made.
// What failed before says nothing about the dependency as it is now.
func (b *Breaker) ClosedAt() time.Time {
	b.lock()
	defer b.mu.Unlock()
	return b.closedAt
}

// Cause is what opened the breaker last, nil if nothing did. It wraps
// [ErrRefused] when that was one refusal of our credentials after the other.
func (b *Breaker) Cause() error {
	b.lock()
	defer b.mu.Unlock()
	return b.cause
}

// RetryIn is how long there is no use in a call: 0 when it is closed or a trial
// may go now. While a trial is out it is short, and [Breaker.Changed] tells sooner.
func (b *Breaker) RetryIn() time.Duration {
	b.lock()
	defer b.mu.Unlock()
	return b.retryIn(time.Now())
}

// Changed returns a channel that is closed at the next change: of the state, or
// because a trial came to nothing and another may go. That time alone has passed
// (a trial may go, or hangs) is not told: wait for RetryIn too.
func (b *Breaker) Changed() <-chan struct{} {
	b.lock()
	defer b.mu.Unlock()
	return b.changed
}

// HoldUntil has no trial go before t, or five minutes from now if that is sooner:
// the dependency asked for it. It does not open a closed breaker, but counts once
// failures have.
func (b *Breaker) HoldUntil(t time.Time) {
	b.lock()
	defer b.mu.Unlock()
	now := time.Now()
	if hold := now.Add(min(t.Sub(now), maxHold)); hold.After(b.hold) {
		b.hold = hold
	}
}

// lock takes mu, and looks whether a trial hangs.
func (b *Breaker) lock() {
	b.mu.Lock()
	b.reap(time.Now())
}

// reap gives up a trial that hangs. The time it hung counts as waited. It is
// called with mu held.
func (b *Breaker) reap(now time.Time) {
	hung := b.trial
	if hung == nil || now.Sub(hung.began) < b.cfg.TrialTimeout {
		return
	}
	b.fail(hung, errHung)
	hung.report(errIgnored) // a failure would have to wait again
	hung.ended, b.cause = true, errHung
	b.notBefore = hung.began.Add(max(b.cfg.TrialTimeout, b.wait()))
	b.free()
}

// free lets another trial go. It is called with mu held.
func (b *Breaker) free() {
	b.trial = nil
	b.announce()
}

// retryIn is called with mu held.
func (b *Breaker) retryIn(now time.Time) time.Duration {
	switch {
	case b.state == Closed:
		return 0
	case b.trial != nil:
		return min(b.cfg.OpenFor, b.trial.began.Add(b.cfg.TrialTimeout).Sub(now))
	case b.hold.After(b.notBefore):
		return max(0, b.hold.Sub(now))
	default:
		return max(0, b.notBefore.Sub(now))
	}
}

// turn follows gobreaker into another state. It is called with mu held.
func (b *Breaker) turn(from, to State) {
	b.state, b.since = to, time.Now()
	b.generation++
	switch to {
	case Open:
		b.notBefore, b.cause = b.since.Add(b.wait()), b.last
		if from == Closed {
			b.stats.Opened++
		}
	case Closed:
		b.closedAt, b.hold = b.since, time.Time{}
		b.futile, b.refused = 0, false
	}
	if b.cfg.OnChange != nil {
		b.news = append(b.news, change{from, to})
	}
	b.announce()
}

// wait is how long the breaker is open now: at first OpenFor, then twice as long
// after each trial, somewhere in the upper half of it.
func (b *Breaker) wait() time.Duration {
	if b.refused {
		return b.cfg.RefusedFor
	}
	if b.futile == 0 {
		return b.cfg.OpenFor
	}
	half := b.cfg.OpenMax / 2
	if shift := b.futile - 1; shift < 62 && b.cfg.OpenFor <= half>>shift {
		half = b.cfg.OpenFor << shift
	}
	return half + jitter.Draw(half, half, 1)
}

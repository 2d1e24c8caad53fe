package breaker

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Call is one call that a breaker let through. Done, Withdraw or Abort must be
// called; what comes after the first of them is ignored.
type Call struct {
	breaker    *Breaker
	report     func(error)
	generation uint64
	trial      bool
	began      time.Time
	ended      bool // guarded by the breaker's mu
}

// Start asks for a call that is no function, such as a request whose answer is
// read later; see [Breaker.Do]. Its error is an [OpenError].
func (b *Breaker) Start() (*Call, error) {
	now := time.Now()
	b.mu.Lock()
	b.reap(now)
	call, err := b.start(now)
	b.unlockAndTell()
	return call, err
}

// start is called with mu held.
func (b *Breaker) start(now time.Time) (*Call, error) {
	wait := b.retryIn(now)
	if wait > 0 {
		b.stats.Refused++
		return nil, &OpenError{Breaker: b, RetryIn: wait}
	}
	report, err := b.two.Allow()
	if err != nil { // it goes by the same clock, but strictly
		b.stats.Refused++
		return nil, &OpenError{Breaker: b}
	}
	call := &Call{breaker: b, report: report, generation: b.generation, trial: b.state == HalfOpen, began: now}
	b.stats.Calls++
	if call.trial {
		b.stats.Trials++
		b.trial = call
	}
	return call, nil
}

// Allow asks for a call whose caller judges it. It returns an [ErrOpen] when
// there must be none; otherwise done must be called, once, with whether the
// dependency did its part.
func (b *Breaker) Allow() (done func(ok bool), err error) {
	call, err := b.Start()
	if err != nil {
		return nil, err
	}
	return func(ok bool) {
		if ok {
			call.end(answered, nil)
			return
		}
		call.end(failed, errFailed)
	}, nil
}

// Trial reports that the call tries whether the breaker may close.
func (c *Call) Trial() bool { return c.trial }

// Done ends the call with its error, nil when it was answered. ctx is its
// caller's: a call that is given up by it is no failure. It returns the error to
// pass on: a [FailureError] if it counted, else err.
func (c *Call) Done(ctx context.Context, err error) error {
	verdict := c.judge(ctx, err)
	c.end(verdict, err)
	if verdict == failed || verdict == refused && c.breaker.State() != Closed {
		return &FailureError{Breaker: c.breaker, Err: err}
	}
	return err
}

// Abort ends a call that nobody can judge: it panicked, or its goroutine is gone.
// Deferred, it does nothing after Done.
func (c *Call) Abort() {
	if c.trial {
		c.end(failed, errAborted)
		return
	}
	c.end(unknown, nil)
}

// Withdraw ends a call that was not made after all, or failed through its caller's
// own fault: it says nothing of the dependency, and another trial may go.
func (c *Call) Withdraw() { c.end(unknown, nil) }

// verdict is what a call tells about the dependency.
type verdict int8

const (
	unknown  verdict = iota // nothing
	answered                // it did its part
	failed                  // it did not
	refused                 // it does not want our credentials
)

func (c *Call) judge(ctx context.Context, err error) verdict {
	cfg := &c.breaker.cfg
	switch ended := ctx.Err(); {
	case err == nil:
		return answered
	case errors.Is(ended, context.DeadlineExceeded):
		if c.trial || time.Since(c.began) >= cfg.Patience {
			return failed
		}
		return unknown
	case ended != nil, errors.Is(err, ErrOpen): // ErrOpen of another breaker
		return unknown
	case isRefused(err):
		return refused
	case cfg.IsFailure == nil || cfg.IsFailure(err):
		return failed
	case isNotSent(err):
		return unknown
	default:
		return answered
	}
}

func (c *Call) end(v verdict, err error) {
	b := c.breaker
	b.mu.Lock()
	b.reap(time.Now())
	if !c.ended {
		c.ended = true
		b.conclude(c, v, err)
	}
	b.unlockAndTell()
}

// conclude draws from a call what it tells. It is called with mu held.
func (b *Breaker) conclude(c *Call, v verdict, err error) {
	if b.trial == c {
		b.trial = nil
	}
	switch v {
	case answered:
		if c.generation == b.generation {
			b.refusals = 0
		}
		c.report(nil)

	case failed:
		b.fail(c, err)
		c.report(errFailed)

	case refused:
		b.refuse(c, err)

	default:
		c.report(errIgnored)
		if c.trial {
			b.announce()
		}
	}
}

// fail notes a failure. It is called with mu held.
func (b *Breaker) fail(c *Call, err error) {
	b.stats.Failures++
	b.stats.LastError = kind(err)
	b.last = err
	if c.trial {
		b.futile++
	}
}

// refuse counts a refusal of our credentials. A trial that finds them refused
// where other things had failed has found the dependency. It is called with mu held.
func (b *Breaker) refuse(c *Call, err error) {
	b.stats.Denied++
	b.stats.LastError = kind(ErrRefused)
	if c.generation != b.generation {
		return
	}
	b.refusals++
	switch many := b.cfg.Refusals > 0 && b.refusals >= b.cfg.Refusals; {
	case many:
		b.refused = true
		b.last = fmt.Errorf("%w %d times in a row: %w", ErrRefused, b.refusals, err)
		if c.trial {
			b.futile++
		}
		c.report(errFailed)
	case c.trial:
		c.report(nil)
	default:
		c.report(errIgnored)
	}
}

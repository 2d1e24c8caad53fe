package breaker

import (
	"errors"
	"fmt"
	"time"
)

// ErrOpen is wrapped by the error of a call that was refused: the breaker is
// open, or tries whether it may close, or the retry budget is spent.
var ErrOpen = errors.New("the circuit breaker is open")

// ErrBudget is wrapped by the error of a retry that the [Budget] had no token for.
var ErrBudget = errors.New("the retry budget is spent")

// ErrRefused is wrapped by [Breaker.Cause] when the dependency refused our
// credentials again and again: a person has to look at them.
var ErrRefused = errors.New("credentials refused")

// Why a trial failed that gave no error.
var (
	errHung    = errors.New("the trial does not end")
	errAborted = errors.New("the trial panicked, or its goroutine ended")
)

// OpenError is the error of a call that was refused. The dependency was not
// asked, so no attempt is spent; errors.Is(err, [ErrOpen]) is true.
type OpenError struct {
	Breaker *Breaker
	RetryIn time.Duration // about when to ask again
	Err     error         // [ErrBudget] if that was the reason, else nil
}

func (e *OpenError) Error() string {
	reason := ErrOpen
	if e.Err != nil {
		reason = e.Err
	}
	return fmt.Sprintf("call %s: %s: not asked, ask again in %s", e.Breaker.Name(), reason, e.RetryIn.Round(time.Millisecond))
}

// Is makes every OpenError an [ErrOpen].
func (e *OpenError) Is(target error) bool { return target == ErrOpen }

func (e *OpenError) Unwrap() error { return e.Err }

// NotSent reports that the dependency has seen nothing of the call.
func (e *OpenError) NotSent() bool { return true }

// FailureError is the error of a call that counted as a failure of the dependency.
type FailureError struct {
	Breaker *Breaker
	Err     error
}

func (e *FailureError) Error() string { return e.Err.Error() }
func (e *FailureError) Unwrap() error { return e.Err }

func (e *OpenError) about() *Breaker    { return e.Breaker }
func (e *FailureError) about() *Breaker { return e.Breaker }

// Of returns the breaker that err, or an error it wraps, is about: the outermost
// [OpenError] or [FailureError]. Nil if there is none.
func Of(err error) *Breaker {
	var of interface{ about() *Breaker }
	if errors.As(err, &of) {
		return of.about()
	}
	return nil
}

// Refused marks err as a refusal of our credentials: no failure, but many in a
// row are no fault of the messages. Refused(nil) is nil.
func Refused(err error) error {
	if err == nil {
		return nil
	}
	return &refusedError{err}
}

type refusedError struct{ err error }

func (e *refusedError) Error() string { return e.err.Error() }
func (e *refusedError) Unwrap() error { return e.err }

func isRefused(err error) bool {
	var r *refusedError
	return errors.As(err, &r)
}

// isNotSent reports an error that says the dependency has seen nothing.
func isNotSent(err error) bool {
	var n interface{ NotSent() bool }
	return errors.As(err, &n) && n.NotSent()
}

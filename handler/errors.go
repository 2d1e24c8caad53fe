package handler

import (
	"errors"
	"time"
)

// Permanent marks err as one that no further attempt can mend: the message
// goes to the dead letters at once. Permanent(nil) is nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanentError{err}
}

// IsPermanent reports whether err, or an error it wraps, was marked by
// [Permanent].
func IsPermanent(err error) bool {
	var p *permanentError
	return errors.As(err, &p)
}

// Unavailable marks err as the absence of something the handler depends on (a
// payment API that does not answer). While no circuit breaker backs it, it is
// a failed attempt like any other. Unavailable(nil) is nil.
func Unavailable(err error) error {
	if err == nil {
		return nil
	}
	return &unavailableError{err}
}

// IsUnavailable reports whether err, or an error it wraps, was marked by
// [Unavailable].
func IsUnavailable(err error) bool {
	var u *unavailableError
	return errors.As(err, &u)
}

// RetryAfter marks err as a failed attempt that should not be tried again
// before delay has passed, as a Retry-After answer asks for. It is obeyed also
// beyond the longest delay of the consumer's schedule: the message waits in the
// inbox. RetryAfter(d, nil) is nil; a negative delay counts as 0.
func RetryAfter(delay time.Duration, err error) error {
	if err == nil {
		return nil
	}
	return &retryAfterError{err: err, delay: max(delay, 0)}
}

// RetryDelay returns the delay that err, or an error it wraps, was marked with
// by [RetryAfter].
func RetryDelay(err error) (delay time.Duration, ok bool) {
	var r *retryAfterError
	if errors.As(err, &r) {
		return r.delay, true
	}
	return 0, false
}

// InFlight marks err: somebody else has in hand what the message needs, for a
// while. The message waits for it and spends no attempt. InFlight(nil) is nil.
func InFlight(err error) error {
	if err == nil {
		return nil
	}
	return &inFlightError{err}
}

// IsInFlight reports whether err, or an error it wraps, was marked by [InFlight].
func IsInFlight(err error) bool {
	var f *inFlightError
	return errors.As(err, &f)
}

// Outage marks err as one of a statement on Semel's own tables, whatever it says. If
// a look at the database shows that it is away, or if a table or the right to it is
// missing, the message waits and spends no attempt; else the attempt has failed.
// Outage(nil) is nil.
func Outage(err error) error {
	if err == nil {
		return nil
	}
	return &outageError{err}
}

// IsOutage reports whether err, or an error it wraps, was marked by [Outage].
func IsOutage(err error) bool {
	var o *outageError
	return errors.As(err, &o)
}

// ErrCallUnknown is wrapped by the error of a message whose call to the outside
// nobody can tell whether it was done: a person has to look. Mark it by [Permanent].
var ErrCallUnknown = errors.New("nobody can tell whether the call was done")

type permanentError struct{ err error }

func (e *permanentError) Error() string { return e.err.Error() }
func (e *permanentError) Unwrap() error { return e.err }

type unavailableError struct{ err error }

func (e *unavailableError) Error() string { return e.err.Error() }
func (e *unavailableError) Unwrap() error { return e.err }

type retryAfterError struct {
	err   error
	delay time.Duration
}

func (e *retryAfterError) Error() string { return e.err.Error() }
func (e *retryAfterError) Unwrap() error { return e.err }

type inFlightError struct{ err error }

func (e *inFlightError) Error() string { return e.err.Error() }
func (e *inFlightError) Unwrap() error { return e.err }

type outageError struct{ err error }

func (e *outageError) Error() string { return e.err.Error() }
func (e *outageError) Unwrap() error { return e.err }

package breaker

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Stats is what a breaker has seen since it was made.
type Stats struct {
	Name  string
	State State
	Since time.Time // when the state last changed

	Calls    uint64 // let through, trials among them
	Failures uint64 // of those
	Denied   uint64 // of those: our credentials were refused
	Refused  uint64 // not let through
	Trials   uint64
	Opened   uint64 // how often it opened, failed trials not counted

	// LastError is what kind the last failure was of: "timeout", "credentials
	// refused", what its method Kind() string says, or the type at its root.
	LastError string
}

// Stats returns a snapshot.
func (b *Breaker) Stats() Stats {
	b.lock()
	defer b.mu.Unlock()
	s := b.stats
	s.Name, s.State, s.Since = b.name, b.state, b.since
	return s
}

// kind tells failures apart without their texts: these may say too much.
func kind(err error) string {
	var kinder interface{ Kind() string }
	var timeout interface{ Timeout() bool }
	switch {
	case errors.Is(err, ErrRefused):
		return "credentials refused"
	case errors.Is(err, errHung), errors.Is(err, errAborted):
		return err.Error()
	case errors.As(err, &kinder):
		return kinder.Kind()
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return "timeout"
	}
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return fmt.Sprintf("%T", err)
		}
		err = inner
	}
}

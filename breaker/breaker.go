// Package breaker stops what cannot succeed: after a few failures in a row a
// circuit breaker opens, so that a broker or a service that is away is left
// alone, and found again by single trials.
package breaker

import (
	"errors"
	"time"

	"github.com/sony/gobreaker/v2"
)

// ErrOpen is returned while a breaker is open, or tries whether it may close.
var ErrOpen = errors.New("the circuit breaker is open")

// errFailed is what gobreaker is told of a failure.
var errFailed = errors.New("failed")

// State is what a breaker does with calls.
type State string

// The states.
const (
	Closed   State = "closed"    // all calls go through
	Open     State = "open"      // none does
	HalfOpen State = "half-open" // one does, to try
)

// Config configures a [Breaker]. The zero value is ready to use.
type Config struct {
	// Failures is how many in a row open the breaker. Defaults to 3.
	Failures uint32

	// OpenFor is how long it stays open before one call may try. Defaults to 2 s.
	OpenFor time.Duration

	// OnChange is told of each change of state. It must be quick.
	OnChange func(from, to State)
}

// Breaker protects one dependency. Make one with [New]. It is safe for
// concurrent use.
type Breaker struct {
	two *gobreaker.TwoStepCircuitBreaker[struct{}]
}

// New returns a closed breaker. The name is for people.
func New(name string, cfg Config) *Breaker {
	if cfg.Failures == 0 {
		cfg.Failures = 3
	}
	if cfg.OpenFor == 0 {
		cfg.OpenFor = 2 * time.Second
	}
	settings := gobreaker.Settings{
		Name:        name,
		Timeout:     cfg.OpenFor,
		ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= cfg.Failures },
	}
	if cfg.OnChange != nil {
		settings.OnStateChange = func(_ string, from, to gobreaker.State) {
			cfg.OnChange(State(from.String()), State(to.String()))
		}
	}
	return &Breaker{two: gobreaker.NewTwoStepCircuitBreaker[struct{}](settings)}
}

// Allow asks for a call. It returns [ErrOpen] when there must be none;
// otherwise done must be called, once, with whether the dependency did its
// part.
func (b *Breaker) Allow() (done func(ok bool), err error) {
	report, err := b.two.Allow()
	if err != nil {
		return nil, ErrOpen
	}
	return func(ok bool) {
		if ok {
			report(nil)
			return
		}
		report(errFailed)
	}, nil
}

// State says what the breaker does now.
func (b *Breaker) State() State { return State(b.two.State().String()) }

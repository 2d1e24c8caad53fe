package breaker

import "time"

// Config configures a [Breaker]. The zero value is ready to use.
type Config struct {
	// Failures is how many in a row open the breaker. Defaults to 3: the quick
	// attempts of one message alone open it, before the message is put off.
	Failures uint32

	// Refusals is how many refusals of our credentials (see [Refused]) in a row,
	// without an answer between, open the breaker. Defaults to 5; negative: never.
	Refusals int

	// OpenFor is how long it stays open before one call may try. After each trial
	// that fails it is twice as long, with jitter. Defaults to 2 s.
	OpenFor time.Duration

	// OpenMax is the longest that grows to. Defaults to 30 s, at least OpenFor.
	OpenMax time.Duration

	// RefusedFor is how long it stays open each time when our credentials were
	// refused: only a person can help. Defaults to 30 s.
	RefusedFor time.Duration

	// TrialTimeout is how long a trial may take before it has failed and another
	// one may go. Defaults to 30 s.
	TrialTimeout time.Duration

	// Patience is how long a call must have had when its caller's deadline passes
	// for that to count as a failure: who comes with little time left learns
	// nothing about the dependency. Defaults to 1 s; negative: it always counts.
	Patience time.Duration

	// IsFailure tells which errors of what [Breaker.Do] calls are the dependency's
	// fault. Any other is an answer: it did its part, unless the error has a
	// method NotSent() bool that says it was not even asked. A caller's
	// cancellation, a refusal, and [ErrOpen] of another breaker are not asked
	// about. Nil: all are.
	IsFailure func(err error) bool

	// OnChange is told of each change of state, one after the other, in order. It
	// must be quick. It may call the breaker.
	OnChange func(from, to State)
}

func (c Config) withDefaults() Config {
	if c.Failures == 0 {
		c.Failures = 3
	}
	if c.Refusals == 0 {
		c.Refusals = 5
	}
	orElse(&c.OpenFor, 2*time.Second)
	orElse(&c.OpenMax, 30*time.Second)
	c.OpenMax = max(c.OpenMax, c.OpenFor)
	orElse(&c.RefusedFor, 30*time.Second)
	orElse(&c.TrialTimeout, 30*time.Second)
	orElse(&c.Patience, time.Second)
	return c
}

func orElse(d *time.Duration, otherwise time.Duration) {
	if *d == 0 {
		*d = otherwise
	}
}

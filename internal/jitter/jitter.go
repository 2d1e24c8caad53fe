// Package jitter makes the one backoff that Semel uses: full jitter. The n-th
// delay is drawn evenly from 0 to min(ceiling, base·2ⁿ), which spreads many
// failures at once better than any fixed schedule does
// (https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/).
package jitter

import (
	"math/rand/v2"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// New returns a backoff with full jitter that never gives up. It is not safe
// for concurrent use.
//
// The library draws from interval·(1±RandomizationFactor), so intervals at
// half the ceiling and a factor of 1 give exactly [0, ceiling].
func New(base, ceiling time.Duration) *backoff.ExponentialBackOff {
	b := &backoff.ExponentialBackOff{
		InitialInterval:     min(base, ceiling) / 2,
		RandomizationFactor: 1,
		Multiplier:          2,
		MaxInterval:         ceiling / 2,
		MaxElapsedTime:      0, // the default stops after 15 minutes
		Stop:                backoff.Stop,
		Clock:               backoff.SystemClock,
	}
	b.Reset()
	return b
}

// Draw returns one delay: the n-th after n-1 before it, for a schedule that is
// kept elsewhere. n counts from 1; less, as somebody may write into a table, is the
// first.
func Draw(base, ceiling time.Duration, n int) time.Duration {
	limit := ceiling
	if shift := max(n, 1) - 1; shift < 62 && base <= ceiling>>shift {
		limit = base << shift
	}
	return rand.N(limit + 1)
}

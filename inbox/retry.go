package inbox

import (
	"errors"
	"fmt"
	"time"

	"github.com/semel-go/semel/internal/jitter"
)

// Retry is a schedule of attempts. The first ones are quick, see
// [Config.QuickAttempts]; before each later one the message waits in the inbox,
// and its source goes on.
type Retry struct {
	// Attempts is how many a message gets in all, quick ones among them. Then it
	// goes to the dead letters. Defaults to 8, or to QuickAttempts if that is more.
	Attempts int

	// Delay and MaxDelay shape the pause before attempts from the inbox: the n-th
	// is drawn evenly from 0 to min(MaxDelay, Delay·2ⁿ), when it is written. An
	// error marked with [handler.RetryAfter] says itself how long, also beyond
	// MaxDelay. Default to 1 s and 30 s.
	Delay    time.Duration
	MaxDelay time.Duration

	// MaxAge bounds the time from the first failed attempt. Only a failed attempt
	// ends it: one that was put off beyond it is made. Defaults to 24 h.
	MaxAge time.Duration
}

func (r Retry) withDefaults(quick int) Retry {
	setDefault(&r.Attempts, max(8, quick))
	setDefault(&r.Delay, time.Second)
	setDefault(&r.MaxDelay, 30*time.Second)
	setDefault(&r.MaxAge, 24*time.Hour)
	return r
}

// over returns r with all that is set in other.
func (r Retry) over(other Retry) Retry {
	set := func(field *time.Duration, value time.Duration) {
		if value != 0 {
			*field = value
		}
	}
	if other.Attempts != 0 {
		r.Attempts = other.Attempts
	}
	set(&r.Delay, other.Delay)
	set(&r.MaxDelay, other.MaxDelay)
	set(&r.MaxAge, other.MaxAge)
	r.MaxDelay = max(r.MaxDelay, r.Delay)
	return r
}

const maxRetryAge = 365 * 24 * time.Hour

func (r Retry) validate(quick int, retention time.Duration) error {
	var errs []error
	refuse := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if r.Attempts < quick {
		refuse("Retry.Attempts is %d; it must be at least QuickAttempts, which is %d", r.Attempts, quick)
	}
	if r.Delay < time.Millisecond || r.MaxDelay > maxRetryAge {
		refuse("Retry.Delay is %s and Retry.MaxDelay %s; they must be between 1ms and %s", r.Delay, r.MaxDelay, maxRetryAge)
	}
	if r.MaxDelay < r.Delay {
		refuse("Retry.MaxDelay is %s; it must not be below Retry.Delay, which is %s", r.MaxDelay, r.Delay)
	}
	if r.MaxAge < r.MaxDelay || r.MaxAge > maxRetryAge {
		refuse("Retry.MaxAge is %s; it must be between Retry.MaxDelay, which is %s, and %s", r.MaxAge, r.MaxDelay, maxRetryAge)
	}
	if retention >= 0 && retention <= r.MaxAge+r.MaxDelay {
		refuse("Retention is %s; it must be longer than Retry.MaxAge and Retry.MaxDelay together, which are %s", retention, r.MaxAge+r.MaxDelay)
	}
	return errors.Join(errs...)
}

// delay is the pause before an attempt from the inbox, after so many failed.
func (r Retry) delay(failed, quick int) time.Duration {
	return jitter.Draw(r.Delay, r.MaxDelay, max(failed-quick, 0)+1)
}

// retryOf is the schedule for a message that failed with err.
func (in *Inbox) retryOf(err error) Retry {
	if in.cfg.RetryOf == nil {
		return in.cfg.Retry
	}
	return in.cfg.Retry.over(in.cfg.RetryOf(err))
}

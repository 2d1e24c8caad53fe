package inbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semel-go/semel/breaker"
	"github.com/semel-go/semel/internal/jitter"
)

// dependency is something outside that messages need, as this consumer sees it by
// its breaker. While that is not closed, messages that met it wait; where it is a
// gate ([Config.Gates]) all others do too.
type dependency struct {
	breaker *breaker.Breaker
	gate    bool
	woken   chan struct{} // one place: a task waits for it

	// Guarded by lanes.mu.
	shut   bool    // who needs it waits
	tended bool    // somebody looks after it
	aside  []*task // those that met it; of a gate they are in lanes.atGate
	last   *task   // that tried it
}

// probe is one task that was let go to try a dependency.
type probe struct {
	of    *dependency
	task  *task
	ended chan struct{} // closed when the task gives its slot back
}

func newDependency(b *breaker.Breaker, gate bool) *dependency {
	return &dependency{breaker: b, gate: gate, woken: make(chan struct{}, 1)}
}

func (d *dependency) wake() {
	select {
	case d.woken <- struct{}{}:
	default:
	}
}

func (d *dependency) isAway() bool { return d.breaker.State() != breaker.Closed }

// err is why nothing is started.
func (d *dependency) err() error {
	return awayError(&breaker.OpenError{Breaker: d.breaker, RetryIn: d.breaker.RetryIn()})
}

// DependencyError is returned by [Inbox.Process] and [Inbox.Replay] while a
// dependency of the message is away. It wraps [ErrOutage]: no attempt is spent, the
// message must come again.
type DependencyError struct {
	Name string // of its breaker
	Err  error
}

// Error names the dependency.
func (e *DependencyError) Error() string {
	return fmt.Sprintf("dependency %q is away: %v", e.Name, e.Err)
}

// Unwrap returns [ErrOutage] and what the dependency's breaker said.
func (e *DependencyError) Unwrap() []error { return []error{ErrOutage, e.Err} }

// awayError is what a caller is told of an error of a breaker.
func awayError(err error) error { return &DependencyError{Name: breaker.Of(err).Name(), Err: err} }

// refused is why a message that a caller brings is not begun. A gate that may be
// tried lets it pass: where there is no source, only a caller can try.
func (in *Inbox) refused() error {
	for _, d := range in.keeper.gates {
		if d.isAway() && d.breaker.RetryIn() > 0 {
			return d.err()
		}
	}
	return nil
}

// waitForDependency has a message wait for the breaker b, which let it not through,
// and spends no attempt. A caller of Process is told instead.
func (in *Inbox) waitForDependency(ctx context.Context, t *task, b *breaker.Breaker, cause error) error {
	in.pardon(ctx, t)
	t.outages++
	if t.run == nil {
		if b.State() != breaker.Closed || t.outages > in.cfg.QuickAttempts {
			return &DependencyError{Name: b.Name(), Err: cause}
		}
		return in.pause(ctx, t, in.untilRetry(t, cause), nil)
	}
	if t.run.isDraining() {
		return ErrDraining
	}
	if b.State() == breaker.Closed { // there are too many retries, or it closed a moment ago
		return in.pause(ctx, t, in.untilRetry(t, cause), nil)
	}
	if t.letOthers != nil { // they may need something else
		t.letOthers()
	}
	t.listen()
	d := in.keeper.of(b)
	if in.lanes.waitFor(t, d) {
		in.keeper.start(context.WithoutCancel(ctx), d)
	}
	err := in.awaitUntil(ctx, t, t.run.stopping) // a drain waits for no dependency
	if err == nil && t.letOthers != nil {
		err = in.alone(ctx, t)
	}
	if err == nil && t.stored != nil {
		in.renew(ctx, t.stored.owner, t.stored.id)
	}
	return err
}

// untilRetry is how long a message waits that a closed breaker let not through.
func (in *Inbox) untilRetry(t *task, cause error) time.Duration {
	if t.outage == nil {
		t.outage = jitter.New(in.cfg.QuickDelay, in.cfg.OutageMaxDelay)
	}
	delay := t.outage.NextBackOff()
	var refused *breaker.OpenError
	if errors.As(cause, &refused) {
		delay = max(delay, min(refused.RetryIn, in.cfg.OutageMaxDelay))
	}
	return delay
}

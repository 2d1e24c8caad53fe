package inbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/semel-go/semel/breaker"
	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/internal/jitter"
)

// maxReruns is how often in a row a message is run again at no cost to its
// attempts (serialization failures, deadlocks) before that is a failed attempt.
const maxReruns = 20

// verdict is what became of one step of a message's life.
type verdict struct {
	kind    verdictKind
	outcome handler.Outcome // settled
	err     error           // all others
}

type verdictKind int8

const (
	settled   verdictKind = iota + 1 // it has its outcome, committed
	stopped                          // drain, revoke, or the caller left: not settled, no attempt spent
	failed                           // the attempt failed
	permanent                        // it can never succeed
	rerun                            // nothing was wrong with it: run it again at once
	elsewhere                        // a copy is in flight in another process
	away                             // the database is away, or may be
	full                             // the inbox has no room for it
	shut                             // a dependency is away: its breaker says so
)

// settle takes a task that has a slot from its first attempt to its outcome.
// It may give the slot back and take another meanwhile.
func (in *Inbox) settle(ctx context.Context, t *task) (handler.Outcome, error) {
	began := time.Now()
	outcome, err := in.live(ctx, t)
	if err != nil {
		return 0, err
	}
	if t.freed || t.dueSoon() {
		in.wakeWorker()
	}
	if outcome == handler.Stored {
		in.failedBefore.remember(t)
	} else {
		in.forgive(t)
	}
	if t.stored == nil || outcome != handler.Stored { // put off: it was counted when it was stored
		in.counters.outcomes[outcome].Add(1)
	}
	in.observe(ctx, Event{Kind: Settled, Message: t.msg, Attempt: t.attempts, Outcome: outcome, Took: time.Since(began)})
	return outcome, nil
}

// dueSoon reports whether the message was put off until before the worker would
// look again by itself: it must learn when.
func (t *task) dueSoon() bool {
	return t.later != nil && t.later.delay < pollAtRest && (t.later.delay > 0 || t.stored != nil)
}

func (in *Inbox) live(ctx context.Context, t *task) (outcome handler.Outcome, err error) {
	if in.suspicious(t) {
		through, err := in.suspect(ctx, t)
		if err != nil {
			return 0, err
		}
		defer through()
	}
	for known := false; t.buried == nil && !known; {
		switch v := in.identify(ctx, t); v.kind {
		case 0:
			known = true
		case permanent:
			in.bury(t, reasonOf(v.err), v.err)
		default:
			if err := in.wait(ctx, t, v); err != nil {
				return 0, err
			}
		}
	}
	if in.cfg.Ordering == ViaInbox && t.stored == nil && t.buried == nil {
		t.later = &postponement{}
	}
	duplicate, err := in.lead(ctx, t)
	if err != nil {
		return 0, err
	}
	if duplicate {
		return handler.Duplicate, nil
	}
	defer func() { in.flights.leave(t, outcome) }()

	for {
		v := in.step(ctx, t)
		switch v.kind {
		case settled:
			return v.outcome, nil
		case stopped:
			return 0, v.err
		default:
			if err := in.next(ctx, t, v); err != nil {
				return 0, err
			}
		}
	}
}

// lead makes t the only one of its id in this process. Duplicate: another one
// with the same content led before it and its effect is committed.
func (in *Inbox) lead(ctx context.Context, t *task) (duplicate bool, err error) {
	for {
		leader, done := in.flights.join(t)
		if leader == nil {
			return false, nil
		}
		if err := in.pause(ctx, t, 0, done); err != nil {
			return false, err
		}
		committed := isHandled(leader.outcome) || leader.outcome == handler.Duplicate
		sameMessage := !t.identity.surrogate && leader.identity.fingerprint == t.identity.fingerprint
		if committed && sameMessage && t.stored == nil { // a duplicate does not take the message out of the inbox
			return true, nil
		}
	}
}

// step does the one thing that the message needs next.
func (in *Inbox) step(ctx context.Context, t *task) verdict {
	switch {
	case t.buried != nil:
		return in.writeDeadLetter(ctx, t)
	case t.later != nil:
		return in.postpone(ctx, t)
	default:
		return in.attempt(ctx, t)
	}
}

// next decides what follows a step that did not settle the message, and waits
// as long as that takes. An error means that the task goes no further.
func (in *Inbox) next(ctx context.Context, t *task, v verdict) error {
	if v.kind != rerun {
		t.reruns, t.collided = 0, nil
	}
	switch v.kind {
	case rerun:
		in.counters.reruns.Add(1)
		if t.reruns++; t.reruns > maxReruns {
			t.reruns, t.collided = 0, nil
			return in.fail(ctx, t, fmt.Errorf("after %d reruns: %w", maxReruns, v.err))
		}
		if t.collided == nil { // the pause grows, so that many that collide on one row drift apart
			t.collided = jitter.New(2*time.Millisecond, 2*time.Second)
		}
		return in.pause(ctx, t, t.collided.NextBackOff(), nil)

	case elsewhere:
		if t.patience == nil {
			t.patience = jitter.New(in.cfg.QuickDelay, in.cfg.QuickMaxDelay)
		}
		return in.pause(ctx, t, t.patience.NextBackOff(), nil)

	case away:
		return in.outage(ctx, t, v.err)

	case full:
		return in.waitForRoom(ctx, t, v.err)

	case shut:
		return in.waitForDependency(ctx, t, shutBy(v.err), v.err)

	case permanent:
		switch b := t.toBlame(v.err); {
		case t.buried == nil && in.leftToOthers(ctx, t, v.err):
		case t.buried == nil && b != nil:
			return in.waitForDependency(ctx, t, b, v.err)
		case t.buried == nil:
			in.pardon(ctx, t)
			in.failed(t, v.err)
			in.bury(t, reasonOf(v.err), v.err)
		case !t.buried.lessen(v.err): // what is wrong is in the database
			return in.outage(ctx, t, v.err)
		}
		return nil

	default: // failed
		return in.fail(ctx, t, v.err)
	}
}

// fail counts a failed attempt. Another one follows after a pause, or the
// dead letters.
func (in *Inbox) fail(ctx context.Context, t *task, cause error) error {
	in.pardon(ctx, t)
	in.failed(t, cause)
	if t.buried != nil || t.later != nil { // what cannot be written is retried for ever
		return in.outage(ctx, t, cause)
	}
	if b := t.toBlame(cause); b != nil {
		return in.waitForDependency(ctx, t, b, cause)
	}
	retry := in.retryOf(cause)
	if t.attempts >= retry.Attempts || time.Since(t.failures.first) >= retry.MaxAge {
		in.bury(t, dlq.Exhausted, cause)
		return nil
	}
	asked, askedFor := handler.RetryDelay(cause)
	if t.attempts >= in.cfg.QuickAttempts || asked > in.cfg.QuickMaxDelay && !mayOpenBreaker(cause) {
		delay := retry.delay(t.attempts, in.cfg.QuickAttempts)
		if askedFor {
			delay = asked
		}
		in.postponed(ctx, t, delay, cause)
		return nil
	}
	delay := t.quickDelay(in.cfg)
	if askedFor {
		delay = min(asked, in.cfg.QuickMaxDelay)
	}
	in.cfg.Logger.WarnContext(ctx, "attempt failed", in.attrs(t,
		slog.Int("attempt", t.attempts), slog.Duration("retry_in", delay), slog.Any("error", cause))...)
	in.observe(ctx, Event{Kind: AttemptFailed, Message: t.msg, Attempt: t.attempts, Err: cause, Delay: delay})
	err := in.pause(ctx, t, delay, nil)
	if err == nil && t.stored != nil {
		in.renew(ctx, t.stored.owner, t.stored.id)
	}
	return err
}

// mayOpenBreaker reports that something that is away, as far as this message knows,
// failed behind a breaker that is closed. The quick attempts tell whether it is away
// for others too: then its breaker opens, which obeys the delay it asked for. Put off
// at once, few messages in many processes would never show that together.
func mayOpenBreaker(cause error) bool {
	return breaker.Of(cause) != nil && handler.IsUnavailable(cause)
}

func (in *Inbox) failed(t *task, cause error) {
	now := time.Now()
	if t.attempts++; t.attempts == 1 {
		t.failures.first = now
	}
	t.failures.last = now
	in.counters.failedAttempts.Add(1)
	if b := breaker.Of(cause); b != nil {
		t.failedCalls = append(t.failedCalls, failedCall{b, now})
	}
}

// failures is what the dead letter will tell.
type failures struct{ first, last time.Time }

func (t *task) quickDelay(cfg Config) time.Duration {
	if t.quick == nil {
		t.quick = jitter.New(cfg.QuickDelay, cfg.QuickMaxDelay)
	}
	return t.quick.NextBackOff()
}

// outage waits until the database answers again. A caller of Process is told
// instead: only it knows what its source should do meanwhile. One lost
// connection is no outage: if a look at the database succeeds, the message
// runs again.
func (in *Inbox) outage(ctx context.Context, t *task, cause error) error {
	if t.outage == nil {
		t.outage = jitter.New(in.cfg.QuickDelay, in.cfg.OutageMaxDelay)
	}
	t.outages++
	delay := t.outage.NextBackOff()
	if t.run != nil {
		opens := t.run.gate.trip(cause)
		if t.outages > in.cfg.QuickAttempts && t.run.isDraining() { // the database answers, and refuses this
			return ErrDraining
		}
		return in.pause(ctx, t, delay, opens)
	}
	if err := in.probe(ctx); err != nil || t.outages > in.cfg.QuickAttempts {
		return outageError(cause, err)
	}
	return in.pause(ctx, t, delay, nil)
}

// outageError tells a caller what is away: the database, or what encodes payloads
// for it.
func outageError(cause, probe error) error {
	if probe == nil && errors.Is(cause, handler.ErrCodec) {
		return &codecError{cause}
	}
	return fmt.Errorf("%w: %w", ErrOutage, errors.Join(cause, probe))
}

// attrs are the attributes of every log line about a message.
func (in *Inbox) attrs(t *task, more ...any) []any {
	return append([]any{
		slog.String("consumer", in.consumer),
		slog.String("message_id", printable(t.msg.ID)),
		slog.String("message_type", printable(t.msg.Type)),
	}, more...)
}

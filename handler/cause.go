package handler

import "context"

// Cause is what a handler runs for: what it writes and sends while it runs is
// caused by this message. The engine puts it into the context of the handler and
// of what prepares it; the outbox takes from it what its events do not say
// themselves, the ledger of calls under what its call is made.
type Cause struct {
	// Consumer is the name of the consumer whose handler runs.
	Consumer string

	// Message is what it handles.
	Message *Message

	// MessageID is under what the message is claimed. Zero: the hash of its id, or
	// that id where it is a UUID.
	MessageID [16]byte

	// Attempt numbers the attempts of the message, from 1. 0: unknown.
	Attempt int

	// Replay reports that a person has the message handled again.
	Replay bool

	kept        any
	outcome     Outcome
	afterCommit []func()
}

// Keep hands value from what prepares a message to its handler: to that of the same
// attempt, which begins when Prepare has returned nil. What must outlive the attempt
// belongs into the ledger of calls.
func (c *Cause) Keep(value any) { c.kept = value }

// Kept returns what Prepare has kept, nil if that is nothing.
func (c *Cause) Kept() any { return c.kept }

// End has the message end with another outcome than [Processed], if what runs for
// it returns nil: [Superseded] or [Skipped]. Any other is ignored. It may be called
// while the handler runs, by its goroutine; what prepares it decides nothing.
func (c *Cause) End(outcome Outcome) {
	if outcome == Superseded || outcome == Skipped {
		c.outcome = outcome
	}
}

// Outcome is how the message ends when what runs for it returns nil.
func (c *Cause) Outcome() Outcome {
	if c.outcome == 0 {
		return Processed
	}
	return c.outcome
}

// AfterCommit has f called once the handler's transaction is committed, and
// never if it is not. It may be called while the handler runs, by its
// goroutine. f must be quick.
func (c *Cause) AfterCommit(f func()) { c.afterCommit = append(c.afterCommit, f) }

// Committed calls what was given to AfterCommit. It is the engine's to call.
func (c *Cause) Committed() {
	for _, f := range c.afterCommit {
		f()
	}
	c.afterCommit = nil
}

type causeKey struct{}

// WithCause returns a context for a handler that runs for cause.
func WithCause(ctx context.Context, cause *Cause) context.Context {
	return context.WithValue(ctx, causeKey{}, cause)
}

// CauseFrom returns what the handler of ctx runs for, nil outside of one.
func CauseFrom(ctx context.Context) *Cause {
	cause, _ := ctx.Value(causeKey{}).(*Cause)
	return cause
}

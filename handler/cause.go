package handler

import "context"

// Cause is what a handler runs for: what it writes and sends while it runs is
// caused by this message. The engine puts it into the handler's context; the
// outbox takes from it what its events do not say themselves.
type Cause struct {
	// Consumer is the name of the consumer whose handler runs.
	Consumer string

	// Message is what it handles.
	Message *Message

	afterCommit []func()
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

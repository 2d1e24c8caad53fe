package inbox

import (
	"context"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/semel-go/semel/handler"
)

// Observer is told what the engine does, as it does it. Logs, metrics and
// traces are adapters of it. Observe is called on the path of the message: it
// must return soon. It must be safe for concurrent use.
type Observer interface {
	Observe(ctx context.Context, e Event)
}

// ObserverFunc is a function that is an [Observer].
type ObserverFunc func(ctx context.Context, e Event)

// Observe calls f.
func (f ObserverFunc) Observe(ctx context.Context, e Event) { f(ctx, e) }

// Event is one thing that the engine did. Fields that do not belong to its
// Kind are zero.
type Event struct {
	Kind     EventKind
	Consumer string
	Message  *handler.Message // read only, and only while Observe runs
	Attempt  int              // from 1; 0 for events that belong to no attempt
	Outcome  handler.Outcome  // Settled
	Reason   string           // DeadLettered
	Err      error            // AttemptFailed, DeadLettered, Paused, Stuck; Resumed: of a dependency
	Delay    time.Duration    // AttemptFailed: until the next attempt
	Messages int              // Taken: how many
	Took     time.Duration    // Settled: since it first had a worker; Resumed: of the outage
}

// EventKind says what happened.
type EventKind int

// The events, in the order in which a message meets them.
const (
	// Claimed: the message's row is written, not committed.
	Claimed EventKind = iota + 1
	// Handled: the handler returned nil.
	Handled
	// Committing: COMMIT is about to be sent.
	Committing
	// Committed: the database has confirmed the commit.
	Committed
	// AttemptFailed: an attempt failed and another one will follow.
	AttemptFailed
	// DeadLettered: the message is in the dead letters, committed.
	DeadLettered
	// Settled: the message has its outcome; it is acknowledged next.
	Settled
	// Paused: the database is away, or a dependency of Config.Gates (Err is a
	// DependencyError), or one message after the other is too old; intake stopped.
	Paused
	// Resumed: what was away is back.
	Resumed
	// Draining: Run's context ended, nothing new is started.
	Draining
	// Stuck: a handler ignored the end of its context; its goroutine is lost
	// until it returns.
	Stuck
	// Storing: the message is in the inbox, not committed.
	Storing
	// Taken: a worker took messages from the inbox.
	Taken
	// Leaving: the message is out of the inbox and the next of its key may run,
	// not committed.
	Leaving
	// Parking: the message is dead and holds its key, not committed.
	Parking
)

var eventNames = [...]string{
	Claimed: "claimed", Handled: "handled", Committing: "committing", Committed: "committed",
	AttemptFailed: "attempt_failed", DeadLettered: "dead_lettered", Settled: "settled",
	Paused: "paused", Resumed: "resumed", Draining: "draining", Stuck: "stuck",
	Storing: "storing", Taken: "taken", Leaving: "leaving", Parking: "parking",
}

// String returns the event's name as it stands in logs and metrics.
func (k EventKind) String() string {
	if k > 0 && int(k) < len(eventNames) {
		return eventNames[k]
	}
	return "unknown"
}

// observe tells the observer. One that panics must not take the message with
// it, or the connection that holds the message's claim.
func (in *Inbox) observe(ctx context.Context, e Event) {
	if in.cfg.Observer == nil {
		return
	}
	defer func() {
		if value := recover(); value != nil {
			in.cfg.Logger.ErrorContext(ctx, "observer panicked", slog.String("consumer", in.consumer),
				slog.String("event", e.Kind.String()), slog.Any("panic", value), slog.String("stack", string(debug.Stack())))
		}
	}()
	e.Consumer = in.consumer
	in.cfg.Observer.Observe(ctx, e)
}

package inbox

import (
	"errors"
	"fmt"
)

var (
	// ErrOutage is wrapped by what [Inbox.Process] and [Inbox.Replay] return
	// while the database is away, or what encodes payloads for it, or a dependency
	// ([DependencyError]). Nothing is known to be wrong with the message and no attempt is spent: do not acknowledge it, try again later.
	ErrOutage = errors.New("database unavailable")

	// ErrDraining is the cause with which handlers are cancelled at the end of
	// [Config.DrainTimeout], and what deliveries are returned with that were
	// not started when Run's context ended.
	ErrDraining = errors.New("consumer is draining")

	// ErrRevoked is what deliveries are returned with that their source took back.
	ErrRevoked = errors.New("delivery revoked by its source")

	// ErrHandlerTimeout is the cause with which a handler is cancelled at the
	// end of [Config.HandlerTimeout].
	ErrHandlerTimeout = errors.New("handler timeout")

	// ErrTxBroken fails an attempt whose handler returned nil on a transaction
	// that cannot commit: one of its statements failed and it went on.
	ErrTxBroken = errors.New("transaction cannot commit")

	// ErrTxEnded fails an attempt whose handler ended the transaction itself.
	ErrTxEnded = errors.New("the engine's transaction was ended by the handler")

	// ErrNoDeadLetter is returned by [Inbox.Replay] when the dead letter does
	// not exist, belongs to another consumer, or is not open.
	ErrNoDeadLetter = errors.New("no such dead letter to replay")

	// ErrRedacted is returned for a dead letter that cannot be replayed any more:
	// its payload was deleted, see [Config.DeadLetterRedactAfter].
	ErrRedacted = errors.New("the payload of the dead letter was deleted")

	// errStuck fails an attempt that the watchdog gave up.
	errStuck = errors.New("handler ignored the end of its context")

	// errGoexit fails an attempt whose handler ended its goroutine.
	errGoexit = errors.New("handler called runtime.Goexit")

	// errBadMessage is returned for a nil message.
	errBadMessage = errors.New("message is nil")
)

// PanicError is the error of an attempt whose handler panicked.
type PanicError struct {
	Value any    // what was panicked with
	Stack []byte // where
}

// Error says what was panicked with.
func (e *PanicError) Error() string { return fmt.Sprintf("handler panicked: %v", e.Value) }

// Unwrap returns the value if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

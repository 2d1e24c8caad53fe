package dlq

import (
	"time"

	"github.com/semel-go/semel/handler"
)

// Reason says why a message is dead. The texts are stored; they never change.
type Reason string

// The reasons.
const (
	// BadID: the message has no id that could be claimed.
	BadID Reason = "bad_id"
	// Undecodable: the payload is not what its type says.
	Undecodable Reason = "undecodable"
	// UnknownType: no handler knows the type.
	UnknownType Reason = "unknown_type"
	// TooLarge: the payload is over the limit.
	TooLarge Reason = "too_large"
	// Permanent: the handler said that no further attempt can help.
	Permanent Reason = "permanent"
	// Exhausted: the budget of attempts or age is spent.
	Exhausted Reason = "exhausted"
	// Mismatch: the id was seen before with another payload.
	Mismatch Reason = "mismatch"
	// TooOld: older than what the consumer still remembers, so nobody can tell
	// whether it was handled.
	TooOld Reason = "too_old"
	// Crashed: it killed its process every time.
	Crashed Reason = "crashed"
	// CallUnknown: nobody can tell whether a call to the outside was done.
	CallUnknown Reason = "call_unknown"
)

// State says what has become of a dead letter. The texts are stored.
type State string

// The states.
const (
	// Open: it waits for a person.
	Open State = "open"
	// Replaying: it is being handled again.
	Replaying State = "replaying"
	// Resolved: it was handled after all.
	Resolved State = "resolved"
	// Discarded: a person decided against it.
	Discarded State = "discarded"
)

// Letter is one dead letter.
type Letter struct {
	// ID numbers the dead letters. [Store.Add] sets none: it returns it.
	ID int64

	// Consumer is the name of the consumer, "" where it is not registered.
	// [Store.Add] does not read it.
	Consumer string

	// ConsumerID is the consumer's id, the hash of its name.
	ConsumerID int32

	// MessageID is the id under which the message was claimed: a surrogate
	// where the message has no usable id.
	MessageID [16]byte

	// Fingerprint is the hash of type and payload; nil is unknown. A mismatch
	// must have one.
	Fingerprint *int64

	// Reason is why it is dead.
	Reason Reason

	// State is what has become of it. [Store.Add] opens it.
	State State

	// Outcome is how its message ended when it was handled after all: one that is
	// superseded or skipped has had no effect. 0 while it is not resolved, once that
	// is purged, in [Store.Add] and from [Store.List].
	Outcome handler.Outcome

	// Owner is who looks after it, "" if nobody does.
	Owner string

	// DecidedBy is who replayed or discarded it last, "" if nobody has.
	DecidedBy string

	// Count is how many copies came. [Store.Add] counts; one whose note was
	// committed without an answer is counted again.
	Count int64

	// Attempts is how many attempts failed. [Store.Add] adds them up; those of a
	// replay whose note was committed without an answer are added again.
	Attempts int

	// FirstFailedAt and LastFailedAt are the first and last failed attempt.
	// Zero in [Store.Add] is the database's clock.
	FirstFailedAt, LastFailedAt time.Time

	// Errors is the chain of errors of the last attempt, see [Chain].
	Errors []string

	// Message is the message as it came. [Store.List] leaves out its payload
	// and headers.
	Message *handler.Message

	// Encoded says that the payload of Message is as it is stored, because the
	// store has no codec, see [Store.WithCodec]. KeyID names the key that it was
	// encoded with, if it was, also where it is decoded; "" after it was deleted,
	// and from [Store.List].
	Encoded bool
	KeyID   string

	// Altered says what had to be changed so that it could be stored; ""
	// means nothing.
	Altered string

	// CreatedAt is when it was stored; ResolvedAt when it was resolved or
	// discarded, zero while it is not.
	CreatedAt, ResolvedAt time.Time

	// RedactedAt is when its payload and the values of its headers were deleted,
	// zero while they are there. Without them it cannot be replayed.
	RedactedAt time.Time
}

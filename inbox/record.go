package inbox

import (
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-go/semel/dedup"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/internal/msgrow"
)

// State is what a message of the inbox waits for.
type State string

// The states of a message in the inbox.
const (
	// StateReady: a worker may take it.
	StateReady State = "ready"

	// StateDelayed: an attempt failed, and the next one is due later.
	StateDelayed State = "delayed"

	// StateTaken: a worker has it.
	StateTaken State = "taken"

	// StateBehind: it waits behind others of its key.
	StateBehind State = "behind"

	// StateParked: it is dead, and holds its key until a person has replayed or
	// discarded its dead letter.
	StateParked State = "parked"
)

var states = [...]State{StateReady, StateDelayed, StateTaken, StateBehind, StateParked}

// Record is a message in the inbox, and how it stands.
type Record struct {
	// Message is what was stored. Of one that is parked or replayed it stands in
	// its dead letter. [Store.List] leaves out payload and headers.
	Message *handler.Message

	// Seq is its place: messages of a key are handled in this order.
	Seq int64

	// Consumer is the name of the consumer, "" where it is not registered.
	Consumer   string
	ConsumerID int32

	// MessageID is the id under which it is claimed.
	MessageID dedup.ID

	// Fingerprint is the hash of type and payload; nil is unknown.
	Fingerprint *int64

	// State is what it waits for.
	State State

	// ReadyAt is since when, or from when on, a worker may take it; of one that is
	// taken, until when the worker has it. Zero: it waits for no time.
	ReadyAt time.Time

	// StoredAt is when it was stored, or its replay began.
	StoredAt time.Time

	// ParkedAt, FirstFailedAt and LastFailedAt are zero where that did not happen.
	ParkedAt, FirstFailedAt, LastFailedAt time.Time

	// Attempts is how many failed; a replay begins with none.
	Attempts int

	// Errors is the chain of errors of the last attempt.
	Errors []string

	// DeadLetterID is the dead letter that holds the message. 0: it has none.
	DeadLetterID int64

	// Damage is what somebody has made of the row by hand that the engine never
	// does. A worker leaves such a message alone where it cannot be handled.
	Damage []string

	// Encoded says that the payload of Message is as it is stored, because the store
	// has no codec, see [Store.WithCodec]. KeyID names the key that it was encoded
	// with, if it was, also where it is decoded. [Store.List] leaves both out.
	Encoded bool
	KeyID   string

	// Altered says what had to be changed so that it could be stored; "" means
	// nothing.
	Altered string
}

// decodeRecord reads a row of queries/list.sql.
func decodeRecord(row pgx.CollectableRow) (Record, error) {
	var (
		r                                          Record
		message                                    msgrow.Row
		id                                         pgtype.UUID
		ready, parked, firstFailed, lastFailed, at pgtype.Timestamptz
	)
	own := []any{
		&r.Seq, &r.Consumer, &r.ConsumerID, &id, &r.State, &r.Fingerprint,
		&at, &ready, &parked, &firstFailed, &lastFailed,
		&r.Attempts, &r.DeadLetterID, (*msgrow.Names)(&r.Errors), &r.Damage,
	}
	if err := row.Scan(append(own, message.Targets()...)...); err != nil {
		return Record{}, err
	}
	r.MessageID, r.Message, r.Altered = id.Bytes, message.Message(), message.Altered()
	r.StoredAt, r.ReadyAt, r.ParkedAt = msgrow.UTC(at), msgrow.UTC(ready), msgrow.UTC(parked)
	r.FirstFailedAt, r.LastFailedAt = msgrow.UTC(firstFailed), msgrow.UTC(lastFailed)
	return r, nil
}

package outbox

import (
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-go/semel/internal/msgrow"
)

// State is where an event stands.
type State string

// The states of an event.
const (
	// StatePending: a relay publishes it when its turn comes.
	StatePending State = "pending"

	// StateWaiting: an attempt failed, the next one is due later. It holds its
	// aggregate until then.
	StateWaiting State = "waiting"

	// StateQuarantined: the relay gave up on it. It holds its aggregate, unless
	// the relay's policy is [Continue], until a person decides.
	StateQuarantined State = "quarantined"

	// StatePublished: the broker has confirmed it, and the relay has noted that.
	StatePublished State = "published"

	// StateDiscarded: a person decided that it is never published.
	StateDiscarded State = "discarded"
)

// Record is an event in the outbox, and what became of it.
type Record struct {
	// Event is what was written. A list leaves Payload and Headers out.
	Event

	// Encoded says that Payload is as it is stored, because the store has no codec,
	// see [Store.WithCodec]. KeyID names the key that it was encoded with, if it was,
	// also where it is decoded. A list leaves both out.
	Encoded bool
	KeyID   string

	// Seq is the place in the order of its aggregate.
	Seq int64

	// Shard is the shard of its aggregate: who owns it publishes it.
	Shard int

	// State is where it stands.
	State State

	// CreatedAt is when it was written.
	CreatedAt time.Time

	// PublishedAt, NextAttemptAt, QuarantinedAt, DiscardedAt and FirstFailedAt
	// are zero where that did not happen, or has no end: somebody has parked the
	// event by hand.
	PublishedAt, NextAttemptAt, QuarantinedAt, DiscardedAt, FirstFailedAt time.Time

	// Attempts is how many attempts failed, in its whole life.
	Attempts int

	// LastError is what the last of them said.
	LastError string
}

// decodeRecord reads a row of queries/load_record.sql or of a list.
func decodeRecord(row pgx.CollectableRow) (Record, error) {
	var (
		r                                                                 Record
		id                                                                uuid.UUID
		shard                                                             int16
		version                                                           pgtype.Int8
		contentType, correlation, causation, source, tags, lastError      pgtype.Text
		occurred, created, published, nextAttempt, quarantined, discarded pgtype.Timestamptz
		failing                                                           pgtype.Timestamptz
		names                                                             msgrow.Names
		values                                                            [][]byte
	)
	err := row.Scan(
		&r.Seq, &id, &shard, &r.AggregateType, &r.AggregateID, &r.Type, &version, &contentType, &occurred,
		&correlation, &causation, &source, &created, &published, &nextAttempt, &quarantined, &discarded, &failing,
		&r.Attempts, &lastError, &r.Payload, &names, &values, &tags,
	)
	if err != nil {
		return Record{}, err
	}
	r.ID, r.Shard, r.Version = id.String(), int(shard), version.Int64
	r.ContentType, r.CorrelationID, r.CausationID, r.Source = contentType.String, correlation.String, causation.String, source.String
	stored, given, values, tagText := msgrow.Unmark(names, values, tags.String)
	r.Encoded, r.KeyID = stored.Encoded, stored.KeyID
	r.Headers = headersOf(given, values, tagText)
	r.OccurredAt, r.CreatedAt = msgrow.UTC(occurred), msgrow.UTC(created)
	r.PublishedAt, r.NextAttemptAt, r.QuarantinedAt = msgrow.UTC(published), msgrow.UTC(nextAttempt), msgrow.UTC(quarantined)
	r.DiscardedAt, r.FirstFailedAt, r.LastError = msgrow.UTC(discarded), msgrow.UTC(failing), lastError.String
	switch { // as the view events says
	case published.Valid:
		r.State = StatePublished
	case discarded.Valid:
		r.State = StateDiscarded
	case quarantined.Valid:
		r.State = StateQuarantined
	case nextAttempt.Valid:
		r.State = StateWaiting
	default:
		r.State = StatePending
	}
	return r, nil
}

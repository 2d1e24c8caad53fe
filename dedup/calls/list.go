package calls

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-go/semel/dedup"
	"github.com/semel-go/semel/internal/msgrow"
)

// ErrNotFound is returned by [Store.Load] when there is no such call.
var ErrNotFound = errors.New("no such call")

// defaultPage is how many calls are listed.
const defaultPage = 100

// Ref names a call.
type Ref struct {
	ConsumerID int32
	MessageID  dedup.ID
	Step       string
}

// Record is a call as it stands in the ledger.
type Record struct {
	Ref

	// Consumer is the name of the consumer. Empty: it is not registered.
	Consumer string

	// Message is the message's id as the producer wrote it.
	Message string

	State      State
	Generation int
	Attempts   int    // how often its intent was committed
	Key        string // its idempotency key

	CreatedAt time.Time
	UpdatedAt time.Time

	// SentFirst is when the provider saw Key first, at the earliest. Zero: it did not.
	// A time that somebody has set by hand to one without end reads as the end of the
	// year 9999 here and below, one without beginning as that of the year 1.
	SentFirst time.Time

	// Deadline is when its last attempt has ended for certain.
	Deadline time.Time

	// LeaseUntil is until when somebody has it in hand. Zero: nobody has.
	LeaseUntil time.Time

	// UnderWay reports that somebody has it in hand, or that its last attempt may not
	// have ended yet.
	UnderWay bool

	// Error is what the last attempt said. Of a call that is [Done]: why its result
	// was not kept.
	Error string

	// ResolvedBy is who decided on it last.
	ResolvedBy string

	// LetterID and LetterState are of the message's dead letter. 0: it has none.
	LetterID    int64
	LetterState string

	// Result is what a call that is done came to. A list leaves it out. Encoded says
	// that it stands as a codec encoded it, with the key KeyID.
	Result  []byte
	Encoded bool
	KeyID   string
}

// Filter says which calls to list. The zero value is all.
type Filter struct {
	// Consumer is a consumer's name. Empty: of every consumer.
	Consumer string

	// State and Step must be equal where they are not zero.
	State State
	Step  string

	// Open leaves only those of which nobody knows the end, and that nobody has in
	// hand, or for ever.
	Open bool

	// Message is the id of a message, or the UUID under which it is claimed. Empty:
	// of all messages.
	Message string

	// Limit is how many to list at most. Defaults to 100.
	Limit int
}

// List returns calls, newest first, without their results. q is a pool, a
// connection or a transaction.
func (s Store) List(ctx context.Context, q querier, f Filter) ([]Record, error) {
	if f.Limit < 0 {
		return nil, fmt.Errorf("list calls: limit %d must not be negative", f.Limit)
	}
	if f.Limit == 0 {
		f.Limit = defaultPage
	}
	var consumer pgtype.Int4
	if f.Consumer != "" {
		consumer = pgtype.Int4{Int32: dedup.ConsumerID(f.Consumer), Valid: true}
	}
	var ids []dedup.ID
	if f.Message != "" {
		ids = append(ids, dedup.MessageID(f.Message))
		var claimedAs pgtype.UUID
		if claimedAs.Scan(f.Message) == nil {
			ids = append(ids, claimedAs.Bytes)
		}
	}
	rows, err := q.Query(ctx, s.queries().list, consumer, pgtype.Int2{Int16: int16(f.State), Valid: f.State != 0}, f.Open, f.Step, ids, f.Limit)
	var records []Record
	if err == nil {
		records, err = pgx.CollectRows(rows, decodeRecord)
	}
	if err != nil {
		return nil, fmt.Errorf("list calls: %w", err)
	}
	return records, nil
}

// Load returns one call with its result. The error wraps [ErrNotFound] when there is
// none, and [handler.ErrCodec] when the store has a codec that cannot decode the
// result.
func (s Store) Load(ctx context.Context, q querier, ref Ref) (*Record, error) {
	rows, err := q.Query(ctx, s.queries().load, ref.ConsumerID, ref.MessageID, ref.Step)
	var r Record
	if err == nil {
		r, err = pgx.CollectExactlyOneRow(rows, decodeRecord)
	}
	if errors.Is(err, pgx.ErrNoRows) {
		err = ErrNotFound
	}
	if err == nil && s.codec != nil && r.Encoded {
		r.Result, err = msgrow.Payload{Bytes: r.Result, KeyID: r.KeyID, Encoded: true}.Decode(ctx, s.codec)
		r.Encoded = false
	}
	if err != nil {
		return nil, fmt.Errorf("load call %.64q of message %s: %w", ref.Step, ref.MessageID, err)
	}
	return &r, nil
}

// CountUnknown returns how many calls are [Unknown]: a person has to look.
func (s Store) CountUnknown(ctx context.Context, q querier) (n int64, err error) {
	if err := q.QueryRow(ctx, s.queries().count).Scan(&n); err != nil {
		return 0, fmt.Errorf("count calls of which nobody knows the end: %w", err)
	}
	return n, nil
}

func decodeRecord(row pgx.CollectableRow) (r Record, err error) {
	var created, updated, sentFirst, deadline, lease pgtype.Timestamptz
	var text, by, letterState, codec pgtype.Text
	var letter pgtype.Int8
	err = row.Scan(&r.ConsumerID, &r.MessageID, &r.Step, &r.Consumer, &r.Message,
		&r.State, &r.Generation, &r.Attempts, &r.Key, &created, &updated,
		&sentFirst, &deadline, &lease, &r.UnderWay, &text, &by, &letter, &letterState, &r.Result, &codec)
	r.CreatedAt, r.UpdatedAt = timeOf(created), timeOf(updated)
	r.SentFirst, r.Deadline, r.LeaseUntil = timeOf(sentFirst), timeOf(deadline), timeOf(lease)
	r.Error, r.ResolvedBy, r.LetterID, r.LetterState = text.String, by.String, letter.Int64, letterState.String
	r.Encoded, r.KeyID = codec.Valid, codec.String
	return r, err
}

package outbox

import (
	"context"
	"database/sql"
	_ "embed"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/internal/msgrow"
	"github.com/semel-go/semel/schema"
)

//go:embed queries/insert.sql
var insertSQL string

//go:embed queries/insert_many.sql
var insertManySQL string

//go:embed queries/lock.sql
var lockSQL string

// Writer writes to the outbox of one schema. The zero value is the default
// schema, [schema.Default]. It is safe for concurrent use.
type Writer struct {
	q     *writerQueries // nil: the default schema's
	wake  func()         // nil: nobody
	codec handler.Codec  // nil: payloads are stored as they are
}

type writerQueries struct{ insert, insertMany string }

var defaultWriterQueries = newWriterQueries(schema.Default)

// NewWriter returns the writer of another schema than the default.
func NewWriter(schemaName string) Writer {
	return Writer{q: newWriterQueries(schemaName)}
}

// AfterCommit returns a writer that calls wake once the transaction of a handler
// in which it wrote is committed: [Relay.Wake], [Notifier.Wake]. Outside of a
// handler of an inbox nobody can know when a transaction commits: call them
// yourself.
func (w Writer) AfterCommit(wake func()) Writer {
	w.wake = wake
	return w
}

// WithCodec returns a writer that stores payloads as codec encodes them. Relays of
// the outbox need it too, see [RelayConfig.Codec]. The codec is called in the
// caller's transaction; what it cannot encode is not written.
func (w Writer) WithCodec(codec handler.Codec) Writer {
	w.codec = codec
	return w
}

func newWriterQueries(schemaName string) *writerQueries {
	return &writerQueries{
		insert:     schema.Qualify(insertSQL, schemaName),
		insertMany: schema.Qualify(insertManySQL, schemaName),
	}
}

func (w Writer) queries() *writerQueries {
	if w.q != nil {
		return w.q
	}
	return defaultWriterQueries
}

// Write writes events to the outbox of the default schema, see [Writer.Write].
func Write(ctx context.Context, tx pgx.Tx, events ...Event) error {
	return Writer{}.Write(ctx, tx, events...)
}

// WriteSQL is [Write] for database/sql, see [Writer.WriteSQL].
func WriteSQL(ctx context.Context, tx *sql.Tx, events ...Event) error {
	return Writer{}.WriteSQL(ctx, tx, events...)
}

// Write writes events in tx, in one round trip: they are published once tx has
// committed, and never if it does not. Events of one aggregate are published in
// the order in which they are given and written, provided that writers of one
// aggregate exclude each other before they call Write (see [Lock]).
//
// An event that could never be published is refused with [ErrBadEvent] before
// anything is sent.
func (w Writer) Write(ctx context.Context, tx pgx.Tx, events ...Event) error {
	rows, err := w.rowsOf(ctx, events)
	if err != nil {
		return err
	}
	switch len(rows) {
	case 0:
		return nil
	case 1:
		_, err = tx.Exec(ctx, w.queries().insert, rows[0].args()...)
	default:
		_, err = tx.Exec(ctx, w.queries().insertMany, columns(rows)...)
	}
	if err != nil {
		return fmt.Errorf("write %s to the outbox: %w", named(events), err)
	}
	w.wakeAfter(ctx)
	return nil
}

func (w Writer) wakeAfter(ctx context.Context) {
	if cause := handler.CauseFrom(ctx); cause != nil && w.wake != nil {
		cause.AfterCommit(w.wake)
	}
}

// WriteSQL is [Writer.Write] in a transaction of database/sql, with any
// PostgreSQL driver. Each event is a round trip of its own.
func (w Writer) WriteSQL(ctx context.Context, tx *sql.Tx, events ...Event) error {
	rows, err := w.rowsOf(ctx, events)
	if err != nil {
		return err
	}
	for i := range rows {
		if _, err := tx.ExecContext(ctx, w.queries().insert, rows[i].sqlArgs()...); err != nil {
			return fmt.Errorf("write %s to the outbox: %w", named(events), err)
		}
	}
	w.wakeAfter(ctx)
	return nil
}

// Lock makes other callers of Lock for the same aggregate wait until tx ends.
// Writers that only insert need it: nothing else holds them apart, and the
// events of one that commits later could be published first. Take it before
// anything else that belongs to the aggregate is written. It waits as long as
// tx's lock_timeout allows.
//
// The lock is an advisory one of the database; two aggregates may share it,
// which costs them a wait and nothing else.
func Lock(ctx context.Context, tx pgx.Tx, aggregateType, aggregateID string) error {
	if _, err := tx.Exec(ctx, lockSQL, lockNumber(aggregateType, aggregateID)); err != nil {
		return fmt.Errorf("lock aggregate %.64q of type %.64q: %w", aggregateID, aggregateType, err)
	}
	return nil
}

// LockSQL is [Lock] for database/sql.
func LockSQL(ctx context.Context, tx *sql.Tx, aggregateType, aggregateID string) error {
	if _, err := tx.ExecContext(ctx, lockSQL, lockNumber(aggregateType, aggregateID)); err != nil {
		return fmt.Errorf("lock aggregate %.64q of type %.64q: %w", aggregateID, aggregateType, err)
	}
	return nil
}

// rowsOf checks events, fills in what they leave to the handler that writes them,
// and to us, and encodes their payloads. The caller's events stay as they are.
func (w Writer) rowsOf(ctx context.Context, events []Event) ([]row, error) {
	cause := handler.CauseFrom(ctx)
	rows := make([]row, len(events))
	for i, e := range events {
		if e.ID == "" {
			e.ID = NewID()
		}
		e.caused(cause)
		if err := e.check(); err != nil {
			return nil, fmt.Errorf("write event %d of %d (%.64q) to the outbox: %w", i+1, len(events), e.Type, err)
		}
		stored, err := msgrow.Encode(ctx, w.codec, e.Payload)
		if err != nil {
			return nil, fmt.Errorf("write event %d of %d (%.64q) to the outbox: %w", i+1, len(events), e.Type, err)
		}
		rows[i] = row{Event: e, stored: stored}
	}
	return rows, nil
}

// named is how an error speaks of events.
func named(events []Event) string {
	if e := events[0]; len(events) == 1 {
		return fmt.Sprintf("event %q of %s %q", e.Type, e.AggregateType, e.AggregateID)
	}
	return fmt.Sprintf("%d events", len(events))
}

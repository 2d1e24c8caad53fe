package dlq

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-go/semel/internal/heapwalk"
)

// defaultPurgeBatch is how many rows one transaction changes.
const defaultPurgeBatch = 10_000

// PurgeConfig says what a purge does. It must have a MaxAge or a RedactAfter.
type PurgeConfig struct {
	// Consumer is the consumer whose dead letters are purged. Empty: those of all.
	// One that is not registered has none.
	Consumer string

	// MaxAge is how long a letter is kept after it was resolved or discarded. 0
	// keeps it for ever.
	MaxAge time.Duration

	// RedactAfter is how long its payload and the values of its headers are kept
	// after that; the row stays, with its ids, names, key and errors. 0 keeps them
	// as long as the row. It must be less than MaxAge.
	RedactAfter time.Duration

	// Open takes open letters too, if they failed that long ago: messages that
	// nobody has decided on are lost for good.
	Open bool

	// Batch is how many rows one transaction changes at most. Defaults to 10,000.
	Batch int

	// Progress, if set, is told after each batch how many are deleted and redacted
	// so far, and which part of the table (0 to 1) is done.
	Progress func(changed int64, part float64)
}

// Purged is how many dead letters a purge has changed.
type Purged struct {
	Deleted, Redacted int64
}

// Purge deletes and redacts dead letters that were resolved or discarded long
// ago, by the database's clock. An open one stays as it is unless
// [PurgeConfig.Open] says otherwise. One that is being replayed, and one that
// holds the only copy of a message of the inbox, stays in any case.
//
// One that somebody has closed by hand without a time counts as closed when a purge
// comes by it.
//
// What processed_messages says of the message is left alone: copies of it are
// duplicates for as long as that row is kept. A redacted letter cannot be
// replayed.
//
// It returns how many it changed, also with an error. Each batch is a short
// transaction of its own, so q is a pool or a connection and no transaction. The
// purge rests between batches to leave room for the consumers.
func (s Store) Purge(ctx context.Context, q querier, cfg PurgeConfig) (Purged, error) {
	var done Purged
	if err := cfg.check(); err != nil {
		return done, fmt.Errorf("purge dead letters: %w", err)
	}
	if cfg.Batch == 0 {
		cfg.Batch = defaultPurgeBatch
	}
	var deleteBefore, redactBefore pgtype.Timestamptz
	var consumer pgtype.Int4
	var blocks int64
	rows, err := q.Query(ctx, s.queries().purgeStart, orNever(cfg.MaxAge), orNever(cfg.RedactAfter), cfg.Consumer, s.queries().schema, cfg.Open)
	if err == nil {
		_, err = pgx.ForEachRow(rows, []any{&deleteBefore, &redactBefore, &consumer, &blocks}, func() error { return nil })
	}
	if err == nil {
		_, err = heapwalk.Walk(ctx, blocks, cfg.Batch, func(ctx context.Context, from, to pgtype.TID, limit int) (found, changed int64, err error) {
			var step Purged
			rows, err := q.Query(ctx, s.queries().purge, from, to, deleteBefore, redactBefore, cfg.Open, consumer, limit)
			if err == nil {
				_, err = pgx.ForEachRow(rows, []any{&found, &step.Deleted, &step.Redacted}, func() error { return nil })
			}
			done.Deleted += step.Deleted
			done.Redacted += step.Redacted
			return found, step.Deleted + step.Redacted, err
		}, cfg.Progress)
	}
	if err != nil {
		return done, fmt.Errorf("purge dead letters (%d deleted, %d redacted): %w", done.Deleted, done.Redacted, err)
	}
	return done, nil
}

func (cfg *PurgeConfig) check() error {
	switch {
	case cfg.Batch < 0 || cfg.MaxAge < 0 || cfg.RedactAfter < 0:
		return fmt.Errorf("batch %d, maximum age %s and age of redaction %s must not be negative", cfg.Batch, cfg.MaxAge, cfg.RedactAfter)
	case cfg.MaxAge == 0 && cfg.RedactAfter == 0:
		return fmt.Errorf("there is neither a maximum age nor an age of redaction: nothing would be done")
	case cfg.MaxAge > 0 && cfg.RedactAfter >= cfg.MaxAge:
		return fmt.Errorf("they are redacted after %s, but deleted after %s already: the age of redaction must be less", cfg.RedactAfter, cfg.MaxAge)
	}
	return nil
}

// orNever is NULL for 0: no moment is before it.
func orNever(age time.Duration) any {
	if age == 0 {
		return nil
	}
	return age
}

package dedup

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-go/semel/internal/heapwalk"
)

// MinRetention is how long rows stay at least: a copy of a message may be on its
// way for a while, and so may the transaction that claims it.
const MinRetention = 24 * time.Hour

// defaultPurgeBatch is how many rows one transaction deletes.
const defaultPurgeBatch = 10_000

// PurgeConfig is everything about a purge that has a default.
type PurgeConfig struct {
	// Consumer is the consumer whose rows are purged. Empty: those of all.
	Consumer string

	// Batch is how many rows one transaction deletes at most. Defaults to 10,000.
	Batch int

	// Progress, if set, is told after each batch how many are deleted so far, and
	// which part of the table (0 to 1) is done.
	Progress func(deleted int64, part float64)
}

// Purge deletes the records of messages that were handled longer ago than
// retention, by the database's clock: from then on a copy of such a message
// would be handled as a new one. Retention must be longer than every way by
// which an id can come back, and at least [MinRetention].
//
// A message that is stored to be handled later, that has a dead letter which is
// neither resolved nor discarded, or that has made a call of which nobody knows the
// end, stays, and so does a record that somebody has dated by hand before the year
// 2000. The other calls to the outside go with their messages. The time of the latest
// row that was deleted is noted for its consumer (consumers.purged_before), so that a
// very old message can be told from one that was never seen.
//
// It returns how many rows it deleted, also with an error. Each batch is a short
// transaction of its own, so db is a pool or a connection and no transaction.
// The purge rests between batches to leave room for the consumers.
func (s Store) Purge(ctx context.Context, db DB, retention time.Duration, cfg PurgeConfig) (deleted int64, err error) {
	deleted, err = s.purge(ctx, db, "processed_messages", s.queries().purge, retention, cfg)
	if err != nil {
		return deleted, fmt.Errorf("purge what was handled more than %s ago (%d deleted): %w", retention, deleted, err)
	}
	return deleted, nil
}

// purge walks a table and deletes what is older than retention.
func (s Store) purge(ctx context.Context, db DB, table, query string, retention time.Duration, cfg PurgeConfig) (deleted int64, err error) {
	if retention < MinRetention {
		return 0, fmt.Errorf("retention is %s; it must be at least %s", retention, MinRetention)
	}
	if cfg.Batch == 0 {
		cfg.Batch = defaultPurgeBatch
	}
	if cfg.Batch < 0 {
		return 0, fmt.Errorf("batch %d must not be negative", cfg.Batch)
	}
	var consumer pgtype.Int4
	if cfg.Consumer != "" {
		if err := CheckConsumer(cfg.Consumer); err != nil {
			return 0, fmt.Errorf("consumer %.64q: %w", cfg.Consumer, err)
		}
		consumer = pgtype.Int4{Int32: ConsumerID(cfg.Consumer), Valid: true}
	}
	var before time.Time
	var blocks int64
	if err := db.QueryRow(ctx, s.queries().purgeStart, retention, s.queries().schema, table).Scan(&before, &blocks); err != nil {
		return 0, err
	}
	return heapwalk.Walk(ctx, blocks, cfg.Batch, func(ctx context.Context, from, to pgtype.TID, limit int) (found, gone int64, err error) {
		err = db.QueryRow(ctx, query, from, to, before, limit, consumer).Scan(&found, &gone)
		return found, gone, err
	}, cfg.Progress)
}

// TakePurgeTurn reports whether the caller may purge what consumer handled: yes
// if nobody took the turn for so long, which the database notes. So consumers that
// run side by side, or start often, purge no more than one would. With 0 it takes
// the turn in any case: a long purge says that it goes on.
//
// [Store.Purge] does not ask: whoever calls it has decided.
func (s Store) TakePurgeTurn(ctx context.Context, db DB, consumer string, every time.Duration) (taken bool, err error) {
	tag, err := db.Exec(ctx, s.queries().purgeTurn, ConsumerID(consumer), every)
	if err != nil {
		return false, fmt.Errorf("take the turn to purge what consumer %.64q handled: %w", consumer, err)
	}
	return tag.RowsAffected() == 1, nil
}

// QueueWatermark queues on b the look at how far the purge of a consumer has
// come; told is called when b is closed, with the zero time if there was none, and
// with the end of the year 9999 if somebody has set it to infinity by hand: then every
// message is from before. It must stand behind the claim, in the same transaction.
//
// Above READ COMMITTED the transaction does not see a purge that deleted the
// message's row after it began. So the consumer is registered once more: that
// does nothing, but fails with a serialization failure if its row has changed.
func (s Store) QueueWatermark(b *pgx.Batch, consumer string, told func(time.Time)) {
	id := ConsumerID(consumer)
	b.Queue(s.queries().register, id, consumer)
	b.Queue(s.queries().watermark, id).QueryRow(func(row pgx.Row) error {
		var before pgtype.Timestamptz
		err := row.Scan(&before)
		if before.InfinityModifier == pgtype.Infinity {
			before.Time = time.Date(9999, time.December, 31, 23, 59, 59, 0, time.UTC)
		}
		told(before.Time)
		return err
	})
}

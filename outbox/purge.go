package outbox

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-go/semel/internal/heapwalk"
)

// defaultPurgeBatch is how many rows one transaction deletes.
const defaultPurgeBatch = 10_000

// PurgeConfig is everything about a purge that has a default.
type PurgeConfig struct {
	// Batch is how many events one transaction deletes at most. Defaults to
	// 10,000.
	Batch int

	// Progress, if set, is told after each batch how many are deleted so far, and
	// which part of the table (0 to 1) is done.
	Progress func(deleted int64, part float64)
}

// Purge deletes the events that were published, or discarded, longer ago than
// olderThan by the database's clock. Whatever is still to be published stays,
// however old it is. It returns how many it deleted, also with an error.
//
// Each batch is a short transaction of its own, so db is a pool or a connection
// and no transaction. The purge rests between batches to leave room for
// writers and relays.
func (s Store) Purge(ctx context.Context, db querier, olderThan time.Duration, cfg PurgeConfig) (deleted int64, err error) {
	if cfg.Batch == 0 {
		cfg.Batch = defaultPurgeBatch
	}
	if cfg.Batch < 0 || olderThan < 0 {
		return 0, fmt.Errorf("purge the outbox: batch %d and age %s must not be negative", cfg.Batch, olderThan)
	}
	var before time.Time
	var blocks int64
	rows, err := db.Query(ctx, s.queries().purgeStart, olderThan, s.queries().schema)
	if err == nil {
		_, err = pgx.ForEachRow(rows, []any{&before, &blocks}, func() error { return nil })
	}
	if err == nil {
		deleted, err = heapwalk.Walk(ctx, blocks, cfg.Batch, func(ctx context.Context, from, to pgtype.TID, limit int) (found, gone int64, err error) {
			rows, err := db.Query(ctx, s.queries().purge, from, to, before, limit)
			if err == nil {
				_, err = pgx.ForEachRow(rows, []any{&found, &gone}, func() error { return nil })
			}
			return found, gone, err
		}, cfg.Progress)
	}
	if err != nil {
		return deleted, fmt.Errorf("purge events older than %s (%d deleted): %w", olderThan, deleted, err)
	}
	return deleted, nil
}

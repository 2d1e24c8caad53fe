package outbox

import (
	"context"
	"errors"
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
	// Batch is how many events one transaction deletes at most, and how many one
	// object of the archive holds. Defaults to 10,000.
	Batch int

	// Archive, if set, is where events go first: none is deleted before it was
	// read back from there. See [Store.Purge].
	Archive ArchiveStore

	// ArchiveRetention is how long the archive is to keep an object, as its manifest
	// says. Defaults to ten years.
	ArchiveRetention time.Duration

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
//
// With [PurgeConfig.Archive] a batch is an object of gzipped JSON Lines with a
// manifest beside it. What goes into it is committed first, then it is written,
// read back and compared, and then its rows are deleted. Whoever purges next goes on
// with what somebody began who died; any number may purge at once. A row that
// was changed by hand meanwhile stays and is archived anew. While the
// archive fails, or has an object with other bytes, nothing is deleted: the error
// says which ([ArchiveError]). Where events were archived once, a purge without
// an archive is refused.
func (s Store) Purge(ctx context.Context, db querier, olderThan time.Duration, cfg PurgeConfig) (deleted int64, err error) {
	setTo(&cfg.Batch, defaultPurgeBatch)
	setTo(&cfg.ArchiveRetention, defaultArchiveRetention)
	if cfg.Batch < 0 || olderThan < 0 || cfg.ArchiveRetention < 0 {
		return 0, fmt.Errorf("purge the outbox: batch %d, age %s and archive retention %s must not be negative", cfg.Batch, olderThan, cfg.ArchiveRetention)
	}
	var before time.Time
	var blocks int64
	rows, err := db.Query(ctx, s.queries().purgeStart, olderThan, s.queries().schema)
	if err == nil {
		_, err = pgx.ForEachRow(rows, []any{&before, &blocks}, func() error { return nil })
	}
	switch {
	case err != nil:
	case cfg.Archive != nil:
		a := archiving{
			store: s, q: s.queries(), db: db, archive: cfg.Archive, retention: cfg.ArchiveRetention,
			before: pgtype.Timestamptz{Time: before, Valid: true}, batch: cfg.Batch,
		}
		deleted, err = a.run(ctx, blocks, cfg.Progress)
	default:
		if err = s.refuseUnarchived(ctx, db); err != nil {
			break
		}
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

// refuseUnarchived returns an error if what is purged goes to an archive: a process that
// was not told of it, an older one or a person's, must not delete what belongs there.
func (s Store) refuseUnarchived(ctx context.Context, db querier) error {
	rows, err := db.Query(ctx, s.queries().archiveAny)
	archived := false
	if err == nil {
		_, err = pgx.ForEachRow(rows, []any{&archived}, func() error { return nil })
	}
	switch {
	case err != nil:
		return fmt.Errorf("look whether it goes to an archive: %w", err)
	case archived:
		return errArchived
	}
	return nil
}

var errArchived = errors.New("what is purged here goes to an archive: say which, or delete the rows of archive_batches if that is over")

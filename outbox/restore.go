package outbox

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// ErrRestoreConflict is returned by [Store.Restore] for an event that the outbox has
// otherwise than the archive.
var ErrRestoreConflict = errors.New("the outbox has this event, and not as it was archived")

// restoredAtOnce is how many rows are on their way to the database at once.
const restoredAtOnce = 500

// Restore puts the events of an object back as they were: published, or discarded,
// with their times, so that people see them where they look for events. No relay
// publishes them again. Those that are there already, and are the same, are skipped;
// one that is otherwise is an error wrapping [ErrRestoreConflict], and tx is to be
// rolled back.
//
// A purge deletes them again when it comes, since they are old, and archives them
// anew if it archives. To publish old events again, write new ones: under their own
// ids, consumers that have forgotten them would act a second time.
func (s Store) Restore(ctx context.Context, tx pgx.Tx, a *Archived) (restored, skipped int, err error) {
	for lines := a.lines; len(lines) > 0; {
		part := lines[:min(restoredAtOnce, len(lines))]
		lines = lines[len(part):]
		there, err := s.restore(ctx, tx, part)
		if err == nil {
			err = s.compare(ctx, tx, there)
		}
		if err != nil {
			return 0, 0, fmt.Errorf("restore the events of object %q: %w", a.Manifest.Object, err)
		}
		restored += len(part) - len(there)
		skipped += len(there)
	}
	return restored, skipped, nil
}

// restore inserts rows and returns those whose ids are there already.
func (s Store) restore(ctx context.Context, tx pgx.Tx, lines []archivedLine) (there []archivedLine, err error) {
	batch := &pgx.Batch{}
	for _, l := range lines {
		batch.Queue(s.queries().archiveRestore, l.row.args()...).Exec(func(tag pgconn.CommandTag) error {
			if tag.RowsAffected() == 0 {
				there = append(there, l)
			}
			return nil
		})
	}
	err = tx.SendBatch(ctx, batch).Close() // fills there
	return there, err
}

// compare requires that the outbox has rows as the archive has them.
func (s Store) compare(ctx context.Context, tx pgx.Tx, lines []archivedLine) error {
	if len(lines) == 0 {
		return nil
	}
	ids := make([]pgtype.UUID, len(lines))
	for i, l := range lines {
		ids[i] = pgtype.UUID{Bytes: l.row.ID, Valid: true}
	}
	c, err := s.copyRows(ctx, tx, ids, ever())
	if err != nil {
		return err
	}
	same := make(map[[16]byte]bool, len(lines))
	archived := hashes(lines)
	for _, r := range c.rows {
		same[r.id] = archived[r.id] == r.hash
	}
	for _, l := range lines {
		if !same[l.row.ID] {
			return fmt.Errorf("event %s: %w", l.row.ID, ErrRestoreConflict)
		}
	}
	return nil
}

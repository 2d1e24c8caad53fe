package outbox

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-go/semel/internal/heapwalk"
)

const (
	// maxObject is how many bytes of payloads and headers go into one object, so that
	// one fits in memory a few times.
	maxObject = 32 << 20

	// defaultArchiveRetention is how long an object is to be kept.
	defaultArchiveRetention = 10 * 365 * 24 * time.Hour
)

// archiving is one purge that archives. It walks the table, and what it has found
// goes to the archive whenever it is enough for an object.
type archiving struct {
	store     Store
	q         *storeQueries
	db        querier
	archive   ArchiveStore
	retention time.Duration
	before    pgtype.Timestamptz // what was published or discarded before this is old
	batch     int

	found []pgtype.UUID
	bytes int64
}

// run archives and deletes what is old. What somebody began who died comes first.
func (a *archiving) run(ctx context.Context, blocks int64, progress func(int64, float64)) (deleted int64, err error) {
	if err := a.knowsAllColumns(ctx); err != nil {
		return 0, err
	}
	resumed, err := a.resume(ctx)
	if err != nil {
		return resumed, err
	}
	walked, err := heapwalk.Walk(ctx, blocks, a.batch, a.step, progress)
	if err != nil {
		return resumed + walked, err
	}
	last, err := a.flush(ctx)
	return resumed + walked + last, err
}

// knowsAllColumns refuses to delete rows of which a part would be lost: those of an
// outbox that a newer program has migrated, or to which somebody has added something.
func (a *archiving) knowsAllColumns(ctx context.Context) error {
	rows, err := a.db.Query(ctx, a.q.archiveUnknown, a.q.schema, archivedColumns())
	var unknown []string
	if err == nil {
		unknown, err = pgx.CollectRows(rows, pgx.RowTo[string])
	}
	if err == nil && len(unknown) > 0 {
		err = fmt.Errorf("it has columns that this version does not archive, %q: archive with a newer one", unknown)
	}
	if err != nil {
		return fmt.Errorf("look at the columns of the outbox: %w", err)
	}
	return nil
}

// step looks for old rows in a part of the table. It stops where there are enough:
// then the walk looks at the rest again, without them.
func (a *archiving) step(ctx context.Context, from, to pgtype.TID, limit int) (found, deleted int64, err error) {
	room, n := limit-len(a.found), 0
	rows, err := a.db.Query(ctx, a.q.archiveFind, from, to, a.before, room)
	if err != nil {
		return 0, 0, fmt.Errorf("look for events to be archived: %w", err)
	}
	var id pgtype.UUID
	var size int64
	for a.bytes < a.q.maxObject && rows.Next() {
		if err := rows.Scan(&id, &size); err != nil {
			rows.Close()
			return 0, 0, fmt.Errorf("look for events to be archived: %w", err)
		}
		a.found, a.bytes, n = append(a.found, id), a.bytes+size, n+1
	}
	rows.Close()
	if err := rows.Err(); err != nil {
		return 0, 0, fmt.Errorf("look for events to be archived: %w", err)
	}
	if n < room && a.bytes < a.q.maxObject {
		return int64(n), 0, nil
	}
	deleted, err = a.flush(ctx)
	return int64(limit), deleted, err
}

// flush has what was found in the archive, as far as nobody else does that, and
// deletes it.
func (a *archiving) flush(ctx context.Context) (deleted int64, err error) {
	ids := a.found
	a.found, a.bytes = nil, 0
	for len(ids) > 0 {
		b, err := a.openBatch(ctx)
		switch {
		case err != nil:
			return deleted, err
		case b == nil:
			if err := a.begin(ctx); err != nil {
				return deleted, err
			}
			continue // somebody may have been faster
		case b.ids != nil: // another purge's
			n, err := a.resume(ctx)
			if deleted += n; err != nil {
				return deleted, err
			}
			continue
		}
		c, err := a.store.copyRows(ctx, a.db, ids, a.before)
		if err != nil || len(c.rows) == 0 {
			return deleted, err
		}
		if err := a.fill(ctx, b, c); err != nil {
			return deleted, err
		}
		b, err = a.openBatch(ctx) // as it stands
		if err != nil {
			return deleted, err
		}
		if b == nil || b.sum != c.sum {
			continue // another purge's: its rows are gone, or going
		}
		n, err := a.settle(ctx, b, c)
		return deleted + n, err
	}
	return deleted, nil
}

// resume goes on with the batch that is open, if it is filled.
func (a *archiving) resume(ctx context.Context) (deleted int64, err error) {
	b, err := a.openBatch(ctx)
	if err != nil || b == nil || b.ids == nil {
		return 0, err
	}
	c, err := a.store.copyRows(ctx, a.db, b.ids, ever())
	if err != nil {
		return 0, err
	}
	return a.settle(ctx, b, c)
}

// What is noted where somebody has locked rows, or the database refuses one.

package outbox

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// lockedError says that events could not be noted because somebody's transaction has
// locked their rows. It says nothing of the database.
type lockedError struct{ events int }

func (e *lockedError) Error() string {
	return fmt.Sprintf("a transaction that is open has locked the rows of %d events: end it", e.events)
}

// isLocked reports whether a statement would have had to wait for somebody's lock.
func isLocked(err error) bool {
	var answer *pgconn.PgError
	return errors.As(err, &answer) && answer.Code == "55P03" || errors.As(err, new(*lockedError))
}

// isRefusal reports whether the database took part and said no: what is wrong is this
// one row, and others are noted all the same.
func isRefusal(err error) bool {
	if isLocked(err) {
		return true
	}
	var answer *pgconn.PgError
	if !errors.As(err, &answer) || len(answer.Code) != 5 {
		return false
	}
	switch answer.Code[:2] {
	case "22", "23", "P0": // what is in it, a constraint, somebody's trigger
		return true
	}
	return false
}

// noteUnlocked notes what was published but for the events whose rows somebody has
// locked: a person who looks at one in an open transaction keeps no other from being
// noted. Those it tells by an error, and by their flag.
func (r *relayRun) noteUnlocked(events []*event) error {
	if len(events) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(r.work, r.cfg.StatementTimeout)
	defer cancel()
	ids := make([]*pgtype.UUID, len(events))
	for i, e := range events {
		ids[i] = &e.id
	}
	locked := make(map[pgtype.UUID]bool)
	err := pgx.BeginFunc(ctx, r.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, byIDSQL); err != nil {
			return err
		}
		free, err := collectIDs(ctx, tx, r.q.free, ids)
		if err != nil {
			return err
		}
		unnoted, err := collectIDs(ctx, tx, r.q.unnoted, ids)
		if err != nil {
			return err
		}
		for _, id := range unnoted {
			locked[id] = true
		}
		for _, id := range free {
			delete(locked, id)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("look for events that are not locked: %w", err)
	}
	free := make([]*event, 0, len(events))
	for _, e := range events {
		if e.locked = locked[e.id]; !e.locked {
			free = append(free, e)
		}
	}
	if len(free) > 0 {
		if err := r.notePublished(free); err != nil {
			return err
		}
	}
	if len(locked) > 0 {
		return &lockedError{events: len(locked)}
	}
	return nil
}

func collectIDs(ctx context.Context, tx pgx.Tx, sql string, ids []*pgtype.UUID) ([]pgtype.UUID, error) {
	rows, err := tx.Query(ctx, sql, ids)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[pgtype.UUID])
}

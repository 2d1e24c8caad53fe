package inbox

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// parks reports whether a message that is dead holds its key until a person has
// decided.
func (in *Inbox) parks(t *task) bool { return in.ordered(t) }

func (in *Inbox) lockKey(ctx context.Context, tx pgx.Tx, key pgtype.Int8) error {
	ctx, cancel := context.WithTimeout(ctx, in.cfg.StatementTimeout)
	defer cancel()
	if _, err := tx.Exec(ctx, in.rows.lock, lockNumber(in.consumerID, key)); err != nil {
		return fmt.Errorf("lock the key of the message: %w", err)
	}
	return nil
}

// park keeps the place of a dead message in its key. It reports false if the
// message is not this process's any more.
func (in *Inbox) park(ctx context.Context, tx pgx.Tx, t *task) (bool, error) {
	in.observe(ctx, Event{Kind: Parking, Message: t.msg, Attempt: t.attempts})
	if t.stored == nil {
		return true, in.insert(ctx, tx, t, in.newRow(t, t.letterID))
	}
	ctx, cancel := context.WithTimeout(ctx, in.cfg.StatementTimeout)
	defer cancel()
	tag, err := tx.Exec(ctx, in.rows.park, in.consumerID, t.stored.id, t.letterID, t.stored.owner)
	if err != nil {
		return false, fmt.Errorf("park message %.64q: %w", t.msg.ID, err)
	}
	return tag.RowsAffected() > 0, nil
}

// leaveDead takes a dead message out of the inbox that nothing waits behind. It
// reports false if it is not this process's any more.
func (in *Inbox) leaveDead(ctx context.Context, tx pgx.Tx, t *task) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, in.cfg.StatementTimeout)
	defer cancel()
	tag, err := tx.Exec(ctx, in.rows.remove, in.consumerID, t.stored.id, t.stored.owner)
	if err != nil {
		return false, fmt.Errorf("take dead message %.64q out of the inbox: %w", t.msg.ID, err)
	}
	return tag.RowsAffected() > 0, nil
}

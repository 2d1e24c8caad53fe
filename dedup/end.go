package dedup

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/handler"
)

// End gives a message that tx has claimed an outcome that only its handler knew:
// [handler.Superseded] or [handler.Skipped].
func (s Store) End(ctx context.Context, tx pgx.Tx, consumerID int32, id ID, outcome handler.Outcome) error {
	tag, err := tx.Exec(ctx, s.queries().end, consumerID, id, int16(outcome))
	if err == nil && tag.RowsAffected() != 1 {
		err = fmt.Errorf("its row is gone from the transaction that claimed it")
	}
	if err != nil {
		return fmt.Errorf("note that the message is %s: %w", outcome, err)
	}
	return nil
}

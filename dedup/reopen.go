package dedup

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Reopen makes a message that was skipped one that waits in the inbox. It reports
// false if the message has another outcome. Fingerprint and text of e are for a
// row that was purged; its outcome is not read.
func (s Store) Reopen(ctx context.Context, tx pgx.Tx, e Entry) (bool, error) {
	tag, err := tx.Exec(ctx, s.queries().reopen, e.ConsumerID, e.MessageID, e.Fingerprint, e.Text)
	if err != nil {
		return false, fmt.Errorf("reopen message %s of consumer %d: %w", e.MessageID, e.ConsumerID, err)
	}
	return tag.RowsAffected() > 0, nil
}

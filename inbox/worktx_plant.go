//go:build plant_record_before_work

package inbox

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// workTx is the planted bug "record-before-work": the claim is committed, and
// the handler works in a second transaction.
func workTx(ctx context.Context, tx *claimedTx) pgx.Tx {
	if tx.Commit(ctx) == nil {
		if work, err := tx.conn.Begin(ctx); err == nil {
			tx.Tx = work
		}
	}
	return tx.Tx
}

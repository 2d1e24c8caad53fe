//go:build !plant_no_claim

package dedup

import "github.com/jackc/pgx/v5/pgconn"

// claimWon reads the answer of a claim: the row count decides, nothing else.
func claimWon(tag pgconn.CommandTag) bool { return tag.RowsAffected() == 1 }

//go:build plant_no_claim

package dedup

import "github.com/jackc/pgx/v5/pgconn"

// claimWon is the planted bug "no-claim": every copy believes that it is the first.
func claimWon(pgconn.CommandTag) bool { return true }

//go:build plant_guard_lets_older_run

package dedup

import (
	"errors"

	"github.com/jackc/pgx/v5"
)

// isOlder is the planted bug "guard-lets-older-run": what is older runs as well.
func isOlder(err error) (bool, error) {
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	return false, err
}

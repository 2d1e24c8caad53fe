//go:build !plant_guard_lets_older_run

package dedup

import (
	"errors"

	"github.com/jackc/pgx/v5"
)

// isOlder reads the answer of a version guard: no row, the entity is further.
func isOlder(err error) (bool, error) {
	if errors.Is(err, pgx.ErrNoRows) {
		return true, nil
	}
	return false, err
}

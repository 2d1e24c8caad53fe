package schema

import (
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
)

var (
	// ErrOutdated is returned by [Check] when the tables are missing or older
	// than this binary needs. Migrate up.
	ErrOutdated = errors.New("the schema is older than this program")

	// ErrTooNew is returned by [Check] when a migration was applied that this
	// binary may not run beside. Deploy a newer one.
	ErrTooNew = errors.New("the schema is too new for this program")

	// ErrForbidden is returned when the database role lacks a right.
	ErrForbidden = errors.New("the database role lacks a right")
)

// insufficientPrivilege is the SQLSTATE of a missing right.
const insufficientPrivilege = "42501"

// explain adds what to do to a refusal by the database; every other error only
// gets its context.
func explain(doing string, err error, remedy string) error {
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == insufficientPrivilege {
		return fmt.Errorf("%s: %w: %w: %s", doing, ErrForbidden, err, remedy)
	}
	return fmt.Errorf("%s: %w", doing, err)
}

package doctor

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// DB is what the checks of a database need of a connection to it.
type DB interface {
	Begin(ctx context.Context) (pgx.Tx, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Unread is the finding of a check that could not read the database.
func Unread(check, object string, err error) Finding {
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == "42501" {
		f := Unasked(check, object, err, "connect as a role that semel migrate grants has given the rights of an operator")
		f.Failed = false // nobody has promised that it may
		return f
	}
	return Unasked(check, object, err, "see whether the database answers")
}

package doctor

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Pooler is what stands between us and the database.
type Pooler struct {
	Between bool // there is one
	Loses   bool // statements that a connection has prepared
}

// FindPooler looks with two connections that were made in the same way. A pooler
// gives itself away: the process that a session runs in is not the one that it was
// said to be when the connection was made. After it has returned an error, or a
// pooler that loses statements, neither is fit for more.
func FindPooler(ctx context.Context, first, second *pgx.Conn) (Pooler, error) {
	var pid uint32
	if err := first.QueryRow(ctx, `SELECT pg_backend_pid()`, pgx.QueryExecModeExec).Scan(&pid); err != nil {
		return Pooler{}, fmt.Errorf("look for a pooler before the database: %w", err)
	}
	if pid == first.PgConn().PID() {
		return Pooler{}, nil
	}
	err := prepareOnBoth(ctx, first, second)
	var pg *pgconn.PgError
	if errors.As(err, &pg) && (pg.Code == "42P05" || pg.Code == "26000") { // it is there already; it is not there
		return Pooler{Between: true, Loses: true}, nil
	}
	if err != nil {
		return Pooler{}, fmt.Errorf("find out whether prepared statements last behind the pooler: %w", err)
	}
	return Pooler{Between: true}, nil
}

// prepareOnBoth prepares one name on first and, in the session that first has used
// if the pooler gives it away, on second; then it runs it on first.
func prepareOnBoth(ctx context.Context, first, second *pgx.Conn) error {
	const sql = `SELECT 1`
	name := "semel_doctor_" + rand.Text()
	if _, err := first.Prepare(ctx, name, sql); err != nil {
		return err
	}
	tx, err := second.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback(ctx) //nolint:errcheck // nothing was done in it
	if _, err := tx.Prepare(ctx, name, sql); err != nil {
		return err
	}
	if _, err := first.Exec(ctx, name); err != nil {
		return err
	}
	return errors.Join(first.Deallocate(ctx, name), second.Deallocate(ctx, name))
}

const poolerCheck = "pooler"

// Check tells whether programs that connect in the same way can live with the
// pooler. They rely on prepared statements in mode cache_statement, pgx's default.
func (p Pooler) Check(mode pgx.QueryExecMode) Finding {
	f := Finding{Check: poolerCheck, Level: OK}
	switch {
	case !p.Between:
		f.Found = "no pooler is between"
	case !p.Loses:
		f.Found = "a pooler is between, and prepared statements last"
	case mode != pgx.QueryExecModeCacheStatement:
		f.Found = "a pooler in transaction mode is between, and the connection string asks for no prepared statements"
	default:
		f.Level = Problem
		f.Found = "a pooler in transaction mode is between, and loses prepared statements"
		f.Why = "pgx relies on them by default: consumers do not start, and of other programs any statement can fail at any time"
		f.Do = "set default_query_exec_mode=cache_describe in the pool's connection string, or max_prepared_statements = 200 in PgBouncer 1.21 or newer"
	}
	return f
}

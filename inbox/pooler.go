package inbox

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// ErrPooler is returned at start when a pooler in transaction mode stands
// before the database and loses prepared statements, and the pool relies on
// them, as pgx does by default: any statement could fail at any time. Where it
// shows only later, it is an outage.
var ErrPooler = errors.New("a pooler in transaction mode loses prepared statements")

const (
	poolerRemedy = "set default_query_exec_mode=cache_describe in the pool's connection string"

	// poolerPatience bounds the wait for a second connection of a busy pool.
	poolerPatience = time.Second
)

// checkPooler finds out whether prepared statements last. A pooler gives itself
// away: the process that a session runs in is not the one that it was said to be
// when the connection was made.
func (in *Inbox) checkPooler(ctx context.Context) error {
	cfg := in.pool.Config()
	if cfg.ConnConfig.DefaultQueryExecMode != pgx.QueryExecModeCacheStatement {
		return nil
	}
	first, err := in.acquire(ctx)
	if err != nil {
		return err
	}
	defer first.Release()
	var pid uint32
	if err := first.QueryRow(ctx, `SELECT pg_backend_pid()`, pgx.QueryExecModeExec).Scan(&pid); err != nil {
		return err
	}
	if pid == first.Conn().PgConn().PID() {
		return nil
	}
	in.pooled.Store(true)
	if cfg.MaxConns < 2 { // one connection alone may always get the same session
		return nil
	}
	patience, cancel := context.WithTimeout(ctx, poolerPatience)
	defer cancel()
	second, err := in.pool.Acquire(patience)
	if err != nil {
		return nil //nolint:nilerr // the pool is busy: what goes wrong later is known for what it is
	}
	defer second.Release()
	if err := prepareOnBoth(ctx, first.Conn(), second.Conn()); err != nil {
		_ = first.Conn().Close(ctx)
		_ = second.Conn().Close(ctx)
		return in.explainPooler(err)
	}
	return nil
}

// prepareOnBoth prepares a statement on first and has second take the session
// that first has used, if a pooler gives it away. Then second finds the
// statement there already, or first does not find it where it is now.
func prepareOnBoth(ctx context.Context, first, second *pgx.Conn) error {
	const sql = `SELECT 1`
	name := "semel_check_" + rand.Text()
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

// misprepared reports an error that says nothing but that a pooler mixed up
// prepared statements. Without a pooler it is the fault of who made it.
func (in *Inbox) misprepared(err error) bool {
	code := sqlState(err)
	return in.pooled.Load() && (code == codeDuplicatePrepared || code == codeNoPrepared)
}

// explainPooler says of an error that misprepared reports what to do.
func (in *Inbox) explainPooler(err error) error {
	if !in.misprepared(err) {
		return err
	}
	return fmt.Errorf("%w: %s: %w", ErrPooler, poolerRemedy, err)
}

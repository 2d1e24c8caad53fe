package schema

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// DB is what migrations need of a database: *pgxpool.Pool and *pgx.Conn have it.
type DB interface {
	Begin(ctx context.Context) (pgx.Tx, error)
}

// The bookkeeping. The lock comes first: what is read behind it is what the
// process before has committed. Reads name the catalog, which anybody may see,
// so that a missing table and a missing right are told apart.
const (
	readCommitted = `SET TRANSACTION ISOLATION LEVEL READ COMMITTED`
	takeLock      = `SELECT pg_catalog.pg_advisory_xact_lock($1)`
	schemaExists  = `SELECT count(*) FROM pg_catalog.pg_namespace WHERE nspname = $1`
	tableExists   = `SELECT count(*) FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relname = 'schema_migrations'`
	listApplied   = `SELECT version, name, oldest_binary, applied_at FROM semel.schema_migrations ORDER BY version`
	recordUp      = `INSERT INTO semel.schema_migrations (version, name, oldest_binary) VALUES ($1, $2, $3)`
	recordDown    = `DELETE FROM semel.schema_migrations WHERE version = $1`
)

const cleanupTimeout = 5 * time.Second

// Up applies the migrations up to target, 0 for the newest, each in a
// transaction of its own, and returns those it applied. It creates the schema
// if that is missing. Where nothing is missing it does nothing.
func Up(ctx context.Context, db DB, schemaName string, target int) ([]Migration, error) {
	if target == 0 {
		target = Version
	}
	return migrate(ctx, db, schemaName, target, (*run).up)
}

// Down takes back the migrations above target, newest first, each in a
// transaction of its own, and returns those it took back. With target 0 all
// tables are dropped with what is in them; the empty schema stays.
func Down(ctx context.Context, db DB, schemaName string, target int) ([]Migration, error) {
	return migrate(ctx, db, schemaName, target, (*run).down)
}

// run is one call of [Up] or [Down].
type run struct {
	schemaName string
	target     int
	known      []Migration
}

// migrate repeats step, one transaction each, until it finds nothing to do.
func migrate(ctx context.Context, db DB, schemaName string, target int, step func(*run, context.Context, pgx.Tx) (*Migration, error)) ([]Migration, error) {
	if err := CheckName(schemaName); err != nil {
		return nil, err
	}
	if target < 0 || target > Version {
		return nil, fmt.Errorf("migrate schema %s to version %d: this program knows versions 0 to %d", quote(schemaName), target, Version)
	}
	known, err := embedded()
	if err != nil {
		return nil, err
	}
	r := &run{schemaName: orDefault(schemaName), target: target, known: known}
	var done []Migration
	for {
		m, err := r.locked(ctx, db, step)
		if err != nil {
			return done, fmt.Errorf("migrate schema %s: %w", quote(schemaName), err)
		}
		if m == nil {
			return done, nil
		}
		done = append(done, *m)
	}
}

// locked runs step in a transaction that holds the schema's lock.
func (r *run) locked(ctx context.Context, db DB, step func(*run, context.Context, pgx.Tx) (*Migration, error)) (m *Migration, err error) {
	tx, err := db.Begin(ctx)
	if err != nil {
		return nil, fmt.Errorf("begin: %w", err)
	}
	defer rollback(ctx, tx, &err)

	// A snapshot from before the wait would not see what the process before did.
	if _, err = tx.Exec(ctx, readCommitted); err != nil {
		return nil, err
	}
	if _, err = tx.Exec(ctx, takeLock, pgx.QueryExecModeExec, lockKey(r.schemaName)); err != nil {
		return nil, fmt.Errorf("wait for other migrations: %w", err)
	}
	if m, err = step(r, ctx, tx); m == nil || err != nil {
		return nil, err
	}
	if err = tx.Commit(ctx); err != nil {
		return nil, fmt.Errorf("commit migration %d: %w", m.Version, err)
	}
	return m, nil
}

// up applies the next migration, nil if there is none.
func (r *run) up(ctx context.Context, tx pgx.Tx) (*Migration, error) {
	applied, err := readApplied(ctx, tx, r.schemaName)
	if err != nil {
		return nil, err
	}
	next := newest(applied) + 1
	if next > r.target {
		return nil, nil
	}
	if next == 1 {
		if err := r.createSchema(ctx, tx); err != nil {
			return nil, err
		}
	}
	m := r.known[next-1]
	remedy := "run it as a role that may create tables there, or let a DBA run the output of `semel migrate print`"
	if _, err := tx.Exec(ctx, Qualify(m.up, r.schemaName)); err != nil {
		return nil, explain(fmt.Sprintf("apply migration %d (%s)", m.Version, m.Name), err, remedy)
	}
	if _, err := tx.Exec(ctx, Qualify(recordUp, r.schemaName), pgx.QueryExecModeExec, m.Version, m.Name, m.OldestBinary); err != nil {
		return nil, explain(fmt.Sprintf("record migration %d (%s)", m.Version, m.Name), err, remedy)
	}
	return &m, nil
}

// createSchema creates the schema if it is missing. IF NOT EXISTS would ask
// for the right to create schemas even where it exists.
func (r *run) createSchema(ctx context.Context, tx pgx.Tx) error {
	exists, err := found(ctx, tx, schemaExists, r.schemaName)
	if err != nil || exists {
		return err
	}
	if _, err := tx.Exec(ctx, "CREATE SCHEMA "+quote(r.schemaName)); err != nil {
		return explain("create the schema", err, "let a DBA create it with this role as its owner, or run the output of `semel migrate print`")
	}
	return nil
}

// down takes back the newest migration, nil if there is none above the target.
func (r *run) down(ctx context.Context, tx pgx.Tx) (*Migration, error) {
	applied, err := readApplied(ctx, tx, r.schemaName)
	if err != nil {
		return nil, err
	}
	last := newest(applied)
	if last <= r.target {
		return nil, nil
	}
	if last > len(r.known) {
		return nil, fmt.Errorf("it is at version %d, and this program knows how to take back versions up to %d: use the newer program", last, len(r.known))
	}
	m := r.known[last-1]
	remedy := "run it as the owner of the tables, or let a DBA run the output of `semel migrate print -down`"
	if _, err := tx.Exec(ctx, Qualify(recordDown, r.schemaName), pgx.QueryExecModeExec, m.Version); err != nil {
		return nil, explain(fmt.Sprintf("record that migration %d (%s) is taken back", m.Version, m.Name), err, remedy)
	}
	if _, err := tx.Exec(ctx, Qualify(m.down, r.schemaName)); err != nil {
		return nil, explain(fmt.Sprintf("take back migration %d (%s)", m.Version, m.Name), err, remedy)
	}
	return &m, nil
}

// readApplied returns the migrations that were applied, oldest first.
func readApplied(ctx context.Context, tx pgx.Tx, schemaName string) ([]Migration, error) {
	exists, err := found(ctx, tx, tableExists, orDefault(schemaName))
	if err != nil || !exists {
		return nil, err
	}
	rows, err := tx.Query(ctx, Qualify(listApplied, schemaName), pgx.QueryExecModeExec)
	var applied []Migration
	if err == nil {
		applied, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (Migration, error) {
			m := Migration{Applied: true}
			var at pgtype.Timestamptz // one without end must not keep every program from its start
			err := row.Scan(&m.Version, &m.Name, &m.OldestBinary, &at)
			m.AppliedAt = at.Time
			return m, err
		})
	}
	if err != nil {
		return nil, explain("read which migrations were applied", err,
			fmt.Sprintf("GRANT USAGE ON SCHEMA %[1]s and SELECT ON %[1]s.schema_migrations to it", quote(schemaName)))
	}
	return applied, nil
}

func found(ctx context.Context, tx pgx.Tx, sql, name string) (bool, error) {
	var n int
	if err := tx.QueryRow(ctx, sql, pgx.QueryExecModeExec, name).Scan(&n); err != nil {
		return false, fmt.Errorf("look into the catalog: %w", err)
	}
	return n > 0, nil
}

func newest(applied []Migration) int {
	if len(applied) == 0 {
		return 0
	}
	return applied[len(applied)-1].Version
}

// lockKey is the advisory lock of a schema's migrations.
func lockKey(schemaName string) int64 {
	sum := sha256.Sum256([]byte("semel migrations of schema " + orDefault(schemaName)))
	return int64(binary.BigEndian.Uint64(sum[:8])) //nolint:gosec // wraps on purpose, it is a hash
}

// rollback ends a transaction that was not committed, also after ctx ended.
func rollback(ctx context.Context, tx pgx.Tx, err *error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	if failed := tx.Rollback(ctx); failed != nil && !errors.Is(failed, pgx.ErrTxClosed) && *err == nil {
		*err = fmt.Errorf("roll back: %w", failed)
	}
}

package schema_test

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/schema"
)

func TestVersion_IsTheNewestMigration(t *testing.T) {
	t.Parallel()

	ups, err := fs.Glob(schema.Migrations(), "*.up.sql")
	require.NoError(t, err)
	downs, err := fs.Glob(schema.Migrations(), "*.down.sql")
	require.NoError(t, err)
	require.Len(t, ups, schema.Version)
	require.Len(t, downs, schema.Version)
}

func TestUpAndDown(t *testing.T) {
	t.Parallel()

	b := setup(t)
	objects := func() int {
		return query[int](t, b, `SELECT (SELECT count(*) FROM pg_class WHERE relnamespace = to_regnamespace(quote_ident($1)))
			+ (SELECT count(*) FROM pg_proc WHERE pronamespace = to_regnamespace(quote_ident($1)))`, b.name)
	}

	for range 2 { // what comes back after a way down is whole again
		require.Zero(t, objects())
		done, err := schema.Up(t.Context(), b.pool, b.name, 0)
		require.NoError(t, err)
		require.Len(t, done, schema.Version)
		require.Equal(t, "create_tables", done[0].Name)
		require.NotZero(t, objects())

		done, err = schema.Up(t.Context(), b.pool, b.name, 0)
		require.NoError(t, err)
		require.Empty(t, done)

		done, err = schema.Down(t.Context(), b.pool, b.name, 0)
		require.NoError(t, err)
		require.Len(t, done, schema.Version)
		done, err = schema.Down(t.Context(), b.pool, b.name, 0)
		require.NoError(t, err)
		require.Empty(t, done)
	}
	require.Zero(t, objects())
}

// The tables of version 2, with rows and at work, get their purge turns: nothing
// is rewritten, an outbox that was there counts as purged just now, and a consumer
// as one that was never purged. The way back leaves the tables as they were.
func TestUp_AddsPurgeTurns(t *testing.T) {
	t.Parallel()

	b := setup(t)
	_, err := schema.Up(t.Context(), b.pool, b.name, 2)
	require.NoError(t, err)
	b.exec(t, `INSERT INTO semel.consumers (id, name, purged_before) VALUES (1, 'shipping', '2026-03-01')`)
	b.exec(t, `UPDATE semel.relay_leases SET epoch = 7 WHERE lo = 0`)
	columns := func() []string {
		return query[[]string](t, b, `SELECT array_agg(table_name || '.' || column_name ORDER BY table_name, ordinal_position)
			FROM information_schema.columns WHERE table_schema = $1`, b.name)
	}
	files := func() []int64 {
		return query[[]int64](t, b, `SELECT array_agg(pg_relation_filenode(oid)::bigint ORDER BY relname) FROM pg_class
			WHERE relname IN ('consumers', 'relay_leases') AND relnamespace = to_regnamespace(quote_ident($1))`, b.name)
	}
	before, filesBefore := columns(), files()
	require.ErrorIs(t, schema.Check(t.Context(), b.pool, b.name), schema.ErrOutdated)
	require.ErrorContains(t, schema.Check(t.Context(), b.pool, b.name), "it is at version 2, version ")

	_, err = schema.Up(t.Context(), b.pool, b.name, 3)
	require.NoError(t, err)

	require.Equal(t, filesBefore, files(), "a table was rewritten")
	require.Equal(t, 1, query[int](t, b, `SELECT count(*) FROM semel.consumers WHERE purging_at IS NULL AND purged_before = '2026-03-01'`))
	require.Equal(t, 64, query[int](t, b, `SELECT count(*) FROM semel.relay_leases
		WHERE purging_at BETWEEN clock_timestamp() - interval '1 hour' AND clock_timestamp()`))

	_, err = schema.Down(t.Context(), b.pool, b.name, 2)
	require.NoError(t, err)
	require.Equal(t, before, columns())
	require.Equal(t, int64(7), query[int64](t, b, `SELECT epoch FROM semel.relay_leases WHERE lo = 0`))
}

func TestMigrate_ImpossibleTarget(t *testing.T) {
	t.Parallel()

	b := setup(t)
	_, err := schema.Up(t.Context(), b.pool, b.name, schema.Version+1)
	require.ErrorContains(t, err, "this program knows versions 0 to")
	_, err = schema.Down(t.Context(), b.pool, b.name, -1)
	require.ErrorContains(t, err, "this program knows versions 0 to")
	_, err = schema.Up(t.Context(), b.pool, "a\x00", 0)
	require.ErrorIs(t, err, schema.ErrName)
}

// Ten processes of one deployment start at once. With the database's default
// isolation raised, a snapshot from before the wait must not be trusted.
func TestUp_ManyProcessesAtOnce(t *testing.T) {
	t.Parallel()

	for _, isolation := range []string{"read committed", "serializable"} {
		t.Run(isolation, func(t *testing.T) {
			t.Parallel()

			b := setup(t)
			const processes = 10
			type result struct {
				applied int
				err     error
			}
			results := make(chan result, processes)
			for range processes {
				go func() {
					config := b.pool.Config().ConnConfig
					config.RuntimeParams["default_transaction_isolation"] = isolation
					conn, err := pgx.ConnectConfig(t.Context(), config)
					if err != nil {
						results <- result{err: err}
						return
					}
					done, err := schema.Up(t.Context(), conn, b.name, 0)
					results <- result{applied: len(done), err: errors.Join(err, conn.Close(t.Context()))}
				}()
			}

			total := 0
			for range processes {
				r := <-results
				require.NoError(t, r.err)
				total += r.applied
			}
			require.Equal(t, schema.Version, total)
			require.NoError(t, schema.Check(t.Context(), b.pool, b.name))
		})
	}
}

// Behind PgBouncer in transaction mode the next transaction may run on another
// server connection: nothing may be left on this one.
func TestUp_NeedsNoSession(t *testing.T) {
	t.Parallel()

	b := setup(t)
	conn, err := pgx.ConnectConfig(t.Context(), b.pool.Config().ConnConfig)
	require.NoError(t, err)
	defer conn.Close(t.Context()) //nolint:errcheck // nothing hangs on it

	_, err = schema.Up(t.Context(), conn, b.name, 0)
	require.NoError(t, err)
	require.NoError(t, schema.Check(t.Context(), conn, b.name))
	require.NoError(t, schema.CheckAccess(t.Context(), conn, b.name, schema.Application))

	var left int
	require.NoError(t, conn.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM pg_prepared_statements) +
		(SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid())`, pgx.QueryExecModeExec).Scan(&left))
	require.Zero(t, left)
}

// A migration that fails leaves nothing of itself.
func TestUp_FailsWhole(t *testing.T) {
	t.Parallel()

	b := setup(t)
	quoted := pgx.Identifier{b.name}.Sanitize()
	b.exec(t, "CREATE SCHEMA "+quoted)
	b.exec(t, "CREATE TABLE semel.dead_letters (mine int)")

	done, err := schema.Up(t.Context(), b.pool, b.name, 0)

	require.ErrorContains(t, err, "apply migration 1 (create_tables)")
	require.ErrorContains(t, err, "already exists")
	require.Empty(t, done)
	require.Equal(t, 1, query[int](t, b, `SELECT count(*) FROM pg_class WHERE relnamespace = to_regnamespace(quote_ident($1))`, b.name))
}

func TestUp_WithoutTheRight(t *testing.T) {
	t.Parallel()

	b := setup(t)
	stranger, _ := b.asRole(t)

	_, err := schema.Up(t.Context(), stranger, b.name, 0)
	require.ErrorIs(t, err, schema.ErrForbidden)
	require.ErrorContains(t, err, "create the schema")
	require.ErrorContains(t, err, "migrate print")

	b.exec(t, "CREATE SCHEMA "+pgx.Identifier{b.name}.Sanitize())
	_, err = schema.Up(t.Context(), stranger, b.name, 0)
	require.ErrorIs(t, err, schema.ErrForbidden)
	require.ErrorContains(t, err, "apply migration 1")

	b.up(t)
	_, err = schema.Down(t.Context(), stranger, b.name, 0)
	require.ErrorIs(t, err, schema.ErrForbidden)
}

// A role that owns the schema needs no right on the database.
func TestUp_InASchemaMadeByTheDBA(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.exec(t, "CREATE SCHEMA "+pgx.Identifier{b.name}.Sanitize())
	owner, _ := b.asRole(t, "GRANT USAGE, CREATE ON SCHEMA "+pgx.Identifier{b.name}.Sanitize())

	_, err := schema.Up(t.Context(), owner, b.name, 0)

	require.NoError(t, err)
	require.NoError(t, schema.CheckAccess(t.Context(), owner, b.name, schema.Application))
}

func TestDown_OfANewerSchema(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.up(t)
	b.exec(t, `INSERT INTO semel.schema_migrations VALUES (99, 'from_the_future', 1)`)

	_, err := schema.Down(t.Context(), b.pool, b.name, 0)
	require.ErrorContains(t, err, "use the newer program")

	done, err := schema.Up(t.Context(), b.pool, b.name, 0)
	require.NoError(t, err)
	require.Empty(t, done)
}

// What a DBA runs by hand is the same as what the program does.
func TestPrint(t *testing.T) {
	t.Parallel()

	b := setup(t)
	var up, down strings.Builder
	require.NoError(t, schema.Print(&up, b.name, 0, schema.Version))
	require.NoError(t, schema.Print(&down, b.name, schema.Version, 0))

	for range 2 {
		_, err := b.pool.Exec(t.Context(), up.String())
		require.NoError(t, err)
		require.NoError(t, schema.Check(t.Context(), b.pool, b.name))
		done, err := schema.Up(t.Context(), b.pool, b.name, 0)
		require.NoError(t, err)
		require.Empty(t, done)

		_, err = b.pool.Exec(t.Context(), down.String())
		require.NoError(t, err)
		require.ErrorIs(t, schema.Check(t.Context(), b.pool, b.name), schema.ErrOutdated)
	}
	require.ErrorContains(t, schema.Print(&up, "", 0, 99), "this program knows versions 0 to")
	require.ErrorIs(t, schema.Print(&up, "a\nb", 0, 1), schema.ErrName)
}

package doctor_test

import (
	"context"
	"crypto/rand"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/internal/doctor"
	"github.com/semel-go/semel/internal/pgtest"
	"github.com/semel-go/semel/schema"
)

// role makes a database role with the rights of some parts, and returns its name
// and a connection as that role.
func role(t *testing.T, db *pgtest.DB, options string, parts ...schema.Role) (name string, conn *pgx.Conn) {
	t.Helper()
	name = "semel_test_" + strings.ToLower(rand.Text()[:16])
	password := rand.Text()
	exec(t, db, `CREATE ROLE `+name+` LOGIN PASSWORD '`+password+`' `+options)
	t.Cleanup(func() {
		_, err := db.Pool.Exec(context.WithoutCancel(t.Context()), `DROP OWNED BY `+name+`; DROP ROLE `+name)
		require.NoError(t, err)
	})
	for _, part := range parts {
		var sql strings.Builder
		require.NoError(t, schema.Grants(&sql, db.Schema, part, name))
		exec(t, db, sql.String())
	}
	u, err := url.Parse(db.URL)
	require.NoError(t, err)
	u.User = url.UserPassword(name, password)
	return name, connect(t, u.String())
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	return conn
}

func exec(t *testing.T, db *pgtest.DB, sql string, args ...any) {
	t.Helper()
	_, err := db.Pool.Exec(t.Context(), sql, args...)
	require.NoError(t, err)
}

func TestReadServer(t *testing.T) {
	t.Parallel()

	db := pgtest.New(t)
	app, conn := role(t, db, "CONNECTION LIMIT 7", schema.Application)

	server, err := doctor.ReadServer(t.Context(), conn, db.Schema)
	require.NoError(t, err)
	var connections int
	require.NoError(t, db.Pool.QueryRow(t.Context(), `SELECT current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int`).Scan(&connections))
	require.Equal(t, app, server.Role)
	require.Equal(t, "on", server.SynchronousCommit)
	require.LessOrEqual(t, server.Connections, connections)
	require.Positive(t, server.Connections)
	require.Equal(t, 7, server.RoleConnections)
	require.Negative(t, server.DatabaseConnections)
	require.Empty(t, server.CommitOff)
	require.Empty(t, server.VacuumOff)
}

// A commit that can be lost is found where it is set: on the connection, for the
// role of an application, for it in this database. What others set is theirs.
func TestReadServer_SynchronousCommit(t *testing.T) {
	t.Parallel()

	db := pgtest.New(t)
	app, conn := role(t, db, "", schema.Application)
	operator, _ := role(t, db, "", schema.Operator)
	var database string
	require.NoError(t, conn.QueryRow(t.Context(), `SELECT quote_ident(current_database())`).Scan(&database))
	exec(t, db, `ALTER ROLE `+app+` SET synchronous_commit = off`)
	exec(t, db, `ALTER ROLE `+app+` IN DATABASE `+database+` SET synchronous_commit = 'no'`)
	exec(t, db, `ALTER ROLE `+operator+` SET synchronous_commit = off`)

	server, err := doctor.ReadServer(t.Context(), conn, db.Schema)
	require.NoError(t, err)
	require.Equal(t, "on", server.SynchronousCommit, "the role's setting is for new connections")
	require.Equal(t, []string{"ALTER ROLE " + app, "ALTER ROLE " + app + " IN DATABASE " + database}, server.CommitOff)
	findings := server.Durability()
	require.Equal(t, []doctor.Level{doctor.Problem, doctor.Problem}, levels(findings))
	require.Equal(t, "ALTER ROLE "+app+" RESET synchronous_commit", findings[0].Do)

	exec(t, db, `ALTER ROLE `+app+` RESET ALL`)
	exec(t, db, `ALTER ROLE `+app+` IN DATABASE `+database+` SET synchronous_commit = local`)
	_, err = conn.Exec(t.Context(), `SET synchronous_commit = off`)
	require.NoError(t, err)
	server, err = doctor.ReadServer(t.Context(), conn, db.Schema)
	require.NoError(t, err)
	require.Equal(t, "off", server.SynchronousCommit)
	require.Empty(t, server.CommitOff, "local is not off")
	findings = server.Durability()
	require.Equal(t, []doctor.Level{doctor.Problem}, levels(findings))
	require.Contains(t, findings[0].Found, "on this connection")
}

// A setting for the whole database is everybody's. A superuser's is that of a
// person, unless it is who looks.
func TestReadServer_SynchronousCommitOfOthers(t *testing.T) {
	t.Parallel()

	db := pgtest.New(t)
	_, conn := role(t, db, "", schema.Application)
	var database string
	var super bool
	require.NoError(t, db.Pool.QueryRow(t.Context(), `SELECT quote_ident(current_database()), rolsuper FROM pg_roles WHERE rolname = session_user`).Scan(&database, &super))
	server, err := doctor.ReadServer(t.Context(), conn, db.Schema)
	require.NoError(t, err)
	before := server.CommitOff

	tx, err := db.Pool.Begin(t.Context()) // nobody else sees this
	require.NoError(t, err)
	defer tx.Rollback(t.Context()) //nolint:errcheck // that is the point
	_, err = tx.Exec(t.Context(), `ALTER DATABASE `+database+` SET synchronous_commit = off`)
	require.NoError(t, err)
	if super {
		person := "semel_test_" + strings.ToLower(rand.Text()[:16])
		_, err = tx.Exec(t.Context(), `CREATE ROLE `+person+` SUPERUSER LOGIN; ALTER ROLE `+person+` SET synchronous_commit = off`)
		require.NoError(t, err)
	}
	server, err = doctor.ReadServer(t.Context(), tx, db.Schema)
	require.NoError(t, err)
	require.Equal(t, append([]string{"ALTER DATABASE " + database}, before...), server.CommitOff)
}

func TestServer_Durability(t *testing.T) {
	t.Parallel()

	safe := doctor.Server{SynchronousCommit: "on", Fsync: true, FullPageWrites: true}
	require.Equal(t, []doctor.Level{doctor.OK}, levels(safe.Durability()))

	noFsync, noPages := safe, safe
	noFsync.Fsync, noPages.FullPageWrites = false, false
	findings := noFsync.Durability()
	require.Equal(t, []doctor.Level{doctor.Problem}, levels(findings))
	require.Equal(t, "fsync is off", findings[0].Found)
	findings = noPages.Durability()
	require.Equal(t, []doctor.Level{doctor.Warning}, levels(findings))
	require.Equal(t, "full_page_writes is off", findings[0].Found)
}

func TestServer_Vacuum(t *testing.T) {
	t.Parallel()

	db := pgtest.New(t)
	exec(t, db, `ALTER TABLE outbox SET (autovacuum_enabled = off)`)
	exec(t, db, `ALTER TABLE dead_letters SET (autovacuum_enabled = true)`)
	exec(t, db, `CREATE TABLE effects (id int) WITH (autovacuum_enabled = false)`)

	server, err := doctor.ReadServer(t.Context(), connect(t, db.URL), db.Schema)
	require.NoError(t, err)
	require.Equal(t, []string{"effects", "outbox"}, server.VacuumOff)
	server.Autovacuum, server.VacuumOff = true, []string{"outbox"}
	findings := server.Vacuum()
	require.Equal(t, []doctor.Level{doctor.Warning}, levels(findings))
	require.Equal(t, "outbox", findings[0].Object)
	require.Equal(t, "ALTER TABLE outbox RESET (autovacuum_enabled)", findings[0].Do)

	server.Autovacuum, server.VacuumOff = false, nil
	require.Equal(t, []doctor.Level{doctor.Warning}, levels(server.Vacuum()))
	server.Autovacuum = true
	require.Equal(t, []doctor.Level{doctor.OK}, levels(server.Vacuum()))
}

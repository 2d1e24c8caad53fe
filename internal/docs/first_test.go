package docs_test

import (
	"context"
	"crypto/rand"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/internal/services"
)

// What the README says under Start, in a database of its own: semel migrate up,
// a table, the first program.
func TestReadme_FirstProgram(t *testing.T) {
	t.Parallel()

	database := newDatabase(t)
	run := func(name string, args ...string) string {
		out, err := command(t, database, name, args...).CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}

	require.Equal(t, "applied 1 create_tables\napplied 2 create_outbox\napplied 3 add_purge_turns\napplied 4 create_inbox\napplied 5 create_calls\napplied 6 add_outbox_functions\napplied 7 create_archive_batches\n", run("go", "run", "./cmd/semel", "migrate", "up"))
	createTable(t, database, read(t, "README.md"))
	require.Equal(t, "processed\nduplicate\n", run("go", "run", "-C", "examples", "./first"))
	require.Equal(t, "duplicate\nduplicate\n", run("go", "run", "-C", "examples", "./first"), "the second time nothing is new")
	require.Equal(t, "no dead letters\n", run("go", "run", "./cmd/semel", "dlq", "list"))
}

// createTable runs what the README gives to psql.
func createTable(t *testing.T, database, readme string) {
	t.Helper()
	_, command, found := strings.Cut(readme, "psql \"$DATABASE_URL\" -c '")
	require.True(t, found, "README.md gives nothing to psql")
	sql, _, _ := strings.Cut(command, "'\n")
	conn, err := pgx.Connect(t.Context(), database)
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), sql)
	require.NoError(t, err)
	require.NoError(t, conn.Close(t.Context()))
}

// newDatabase makes a database beside the test database and drops it at the
// end: the first program uses the default schema, which is nobody's alone.
func newDatabase(t *testing.T) string {
	t.Helper()
	base, err := url.Parse(services.Postgres(t))
	if err != nil || !strings.HasPrefix(base.Scheme, "postgres") {
		t.Skip("SKIPPED, PROVES NOTHING: DATABASE_URL is no URL, so no other database can be put into it")
	}
	admin, err := pgx.Connect(t.Context(), base.String())
	require.NoError(t, err)
	name := "semel_docs_" + strings.ToLower(rand.Text()[:16])
	_, err = admin.Exec(t.Context(), "CREATE DATABASE "+name+" ENCODING 'UTF8' TEMPLATE template0")
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == "42501" {
		require.NoError(t, admin.Close(t.Context()))
		t.Skip("SKIPPED, PROVES NOTHING: the role of DATABASE_URL may not create databases")
	}
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		_, err := admin.Exec(ctx, "DROP DATABASE "+name+" WITH (FORCE)")
		require.NoError(t, err)
		require.NoError(t, admin.Close(ctx))
	})
	base.Path = "/" + name
	return base.String()
}

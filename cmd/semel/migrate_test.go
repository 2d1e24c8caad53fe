package main_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/internal/pgtest"
	"github.com/semel-go/semel/schema"
)

func TestMigrate(t *testing.T) {
	t.Parallel()

	db := pgtest.New(t)
	status := func() string {
		return regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ`).ReplaceAllString(works(t, db, "migrate", "status"), "DATE")
	}
	named := func(text string) string { return strings.ReplaceAll(text, db.Schema, "SCHEMA") }

	require.Equal(t, "schema \"SCHEMA\" is up to date\n", named(works(t, db, "migrate", "up")))
	requireGolden(t, "status.txt", status())

	// Going down destroys: without -yes it only says what.
	r := semel(t, db.URL, "migrate", "down", "-to", "0", "-schema", db.Schema)
	require.Equal(t, 1, r.code)
	require.Equal(t, "semel: nothing was done: add -yes to do it\n", r.stderr)
	requireGolden(t, "down.txt", named(r.stdout))
	require.NoError(t, schema.Check(t.Context(), db.Pool, db.Schema))

	require.Contains(t, works(t, db, "migrate", "down", "-to", "0", "-yes"), "took back 1 create_tables\n")
	require.ErrorIs(t, schema.Check(t.Context(), db.Pool, db.Schema), schema.ErrOutdated)
	require.Equal(t, "schema \"SCHEMA\" is at version 0 already\n", named(works(t, db, "migrate", "down", "-to", "0", "-yes")))
	requireGolden(t, "status_empty.txt", status())
	require.JSONEq(t, `[{"version": 1, "name": "create_tables", "oldest_binary": 1, "applied_at": null}]`, works(t, db, "migrate", "status", "-json"))

	r = semel(t, db.URL, "dlq", "list", "-schema", db.Schema)
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stderr, "run `semel migrate up -schema")

	require.Equal(t, "applied 1 create_tables\n", works(t, db, "migrate", "up"))
	require.NoError(t, schema.Check(t.Context(), db.Pool, db.Schema))
}

// The DBA's way: what is printed, run as it stands, is what the program needs.
func TestMigratePrint(t *testing.T) {
	t.Parallel()

	db := pgtest.New(t)
	run := func(sql string) {
		var results []*pgconn.Result
		conn, err := db.Pool.Acquire(t.Context())
		require.NoError(t, err)
		defer conn.Release()
		results, err = conn.Conn().PgConn().Exec(t.Context(), sql).ReadAll()
		require.NoError(t, err)
		require.NotEmpty(t, results)
	}

	run(works(t, db, "migrate", "print", "-down"))
	require.ErrorIs(t, schema.Check(t.Context(), db.Pool, db.Schema), schema.ErrOutdated)
	run(works(t, db, "migrate", "print"))
	require.NoError(t, schema.Check(t.Context(), db.Pool, db.Schema))
	require.Equal(t, "", works(t, db, "migrate", "print", "-from", "1"))
}

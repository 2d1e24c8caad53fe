package main_test

import (
	"regexp"
	"strconv"
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

	require.Contains(t, works(t, db, "migrate", "down", "-to", "0", "-yes"), "took back 7 create_archive_batches\ntook back 6 add_outbox_functions\ntook back 5 create_calls\ntook back 4 create_inbox\ntook back 3 add_purge_turns\ntook back 2 create_outbox\ntook back 1 create_tables\n")
	require.ErrorIs(t, schema.Check(t.Context(), db.Pool, db.Schema), schema.ErrOutdated)
	require.Equal(t, "schema \"SCHEMA\" is at version 0 already\n", named(works(t, db, "migrate", "down", "-to", "0", "-yes")))
	requireGolden(t, "status_empty.txt", status())
	require.JSONEq(t, `[{"version": 1, "name": "create_tables", "oldest_binary": 1, "applied": false, "applied_at": null},
		{"version": 2, "name": "create_outbox", "oldest_binary": 1, "applied": false, "applied_at": null},
		{"version": 3, "name": "add_purge_turns", "oldest_binary": 1, "applied": false, "applied_at": null},
		{"version": 4, "name": "create_inbox", "oldest_binary": 1, "applied": false, "applied_at": null},
		{"version": 5, "name": "create_calls", "oldest_binary": 1, "applied": false, "applied_at": null},
		{"version": 6, "name": "add_outbox_functions", "oldest_binary": 1, "applied": false, "applied_at": null},
		{"version": 7, "name": "create_archive_batches", "oldest_binary": 1, "applied": false, "applied_at": null}]`, works(t, db, "migrate", "status", "-json"))

	r = semel(t, db.URL, "dlq", "list", "-schema", db.Schema)
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stderr, "run `semel migrate up -schema")

	require.Equal(t, "applied 1 create_tables\napplied 2 create_outbox\napplied 3 add_purge_turns\napplied 4 create_inbox\napplied 5 create_calls\napplied 6 add_outbox_functions\napplied 7 create_archive_batches\n", works(t, db, "migrate", "up"))
	require.NoError(t, schema.Check(t.Context(), db.Pool, db.Schema))
}

// Somebody has changed when migrations were applied to what is no time: they are
// applied, and going down says what it drops.
func TestMigrate_TimesByHand(t *testing.T) {
	t.Parallel()

	db := pgtest.New(t)
	_, err := db.Pool.Exec(t.Context(), `UPDATE schema_migrations SET applied_at = CASE version WHEN 3 THEN '-infinity' WHEN 4 THEN '20000-01-01 00:00Z' ELSE 'infinity' END::timestamptz WHERE version >= 3`)
	require.NoError(t, err)

	status := works(t, db, "migrate", "status")
	require.Regexp(t, `add_purge_turns +1 +nobody knows when\n`, status)
	require.Regexp(t, `create_inbox +1 +20000-01-01 00:00:00Z\n`, status)
	require.NotContains(t, status, "not yet")
	require.Contains(t, works(t, db, "migrate", "status", "-json"), `"applied": true,
    "applied_at": null,`)
	r := semel(t, db.URL, "migrate", "down", "-to", "2", "-schema", db.Schema)
	require.Equal(t, "semel: nothing was done: add -yes to do it\n", r.stderr)
	require.Contains(t, r.stdout, "going down from version 7 to 2 drops")
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
	require.Equal(t, "", works(t, db, "migrate", "print", "-from", strconv.Itoa(schema.Version)))
}

// What a newer program has done to the tables is shown by an older one, with
// what that means for it.
func TestMigrateStatus_NewerSchema(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name   string
		oldest int
		says   string
		code   int // of semel dlq list
	}{
		{name: "MayRun", oldest: 1, says: "newer than this program, which is built for version 7 and may run on it\n"},
		{name: "MustNotRun", oldest: 99, says: "and must not run on it: deploy a newer one\n", code: 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			db := pgtest.New(t)
			_, err := db.Pool.Exec(t.Context(), `INSERT INTO schema_migrations (version, name, oldest_binary) VALUES (99, 'from_the_future', $1)`, tt.oldest)
			require.NoError(t, err)

			status := works(t, db, "migrate", "status")
			require.Regexp(t, `(?m)^99 +from_the_future +`+strconv.Itoa(tt.oldest)+` +\d`, status)
			require.Contains(t, status, tt.says)
			require.Contains(t, works(t, db, "migrate", "status", "-json"), `"from_the_future"`)
			require.Contains(t, works(t, db, "migrate", "up"), "is up to date")

			r := semel(t, db.URL, "migrate", "down", "-to", "0", "-yes", "-schema", db.Schema)
			require.Equal(t, 1, r.code)
			require.Contains(t, r.stderr, "use the newer program")
			r = semel(t, db.URL, "dlq", "list", "-schema", db.Schema)
			require.Equal(t, tt.code, r.code, r.stderr)
		})
	}
}

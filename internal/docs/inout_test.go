package docs_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// What the README says about a service that exists, in a database of its own:
// in with the ids that were handled before, and out again without a trace.
func TestReadme_InAndOut(t *testing.T) {
	t.Parallel()

	database := newDatabase(t)
	conn, err := pgx.Connect(t.Context(), database)
	require.NoError(t, err)
	defer conn.Close(t.Context()) //nolint:errcheck // nothing hangs on it
	do := func(sql string) {
		t.Helper()
		_, err := conn.Exec(t.Context(), sql)
		require.NoError(t, err)
	}
	count := func(sql string) (n int) {
		t.Helper()
		require.NoError(t, conn.QueryRow(t.Context(), sql, pgx.QueryExecModeExec).Scan(&n))
		return n
	}
	run := func(name string, args ...string) string {
		t.Helper()
		out, err := command(t, database, name, args...).CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	section := part(t, read(t, "README.md"), "\n## In a service that exists\n", "\n## ")
	imports, commands := blocks(section, "sql"), blocks(section, "sh")
	require.Len(t, imports, 1)
	require.Len(t, commands, 2)

	// The service as it was: its table of ids, one a UUID.
	do(`CREATE TABLE handled_events (event_id text PRIMARY KEY)`)
	do(`INSERT INTO handled_events VALUES ('evt_1'), ('0191e2a0-0000-7abc-8000-0123456789ab')`)
	do(`CREATE TABLE shipments (order_id bigint NOT NULL)`)

	run("go", "run", "./cmd/semel", "migrate", "up")
	do(imports[0])
	require.Equal(t, 2, count(`SELECT count(*) FROM semel.processed WHERE consumer_id = semel.consumer_id('shipping') AND message IN (SELECT event_id FROM handled_events)`))
	require.Equal(t, "duplicate\nduplicate\n", run("go", "run", "-C", "examples", "./first"), "evt_1 was handled before")
	require.Zero(t, count(`SELECT count(*) FROM shipments`))

	for line := range strings.Lines(commands[1]) {
		line, _, _ = strings.Cut(strings.TrimSpace(line), " #")
		if sql, ok := strings.CutPrefix(line, `psql "$DATABASE_URL" -c '`); ok {
			do(strings.TrimSuffix(sql, "'"))
			continue
		}
		args := strings.Fields(line)
		require.Equal(t, "semel", args[0], line)
		out, err := command(t, database, "go", append([]string{"run", "./cmd/semel"}, args[1:]...)...).CombinedOutput()
		if strings.Contains(line, "down") && !strings.Contains(line, "-yes") {
			require.Error(t, err, "%s must only say what it would do", line)
			require.Contains(t, string(out), "drops, with all rows")
			continue
		}
		require.NoError(t, err, "%s: %s", line, out)
	}
	require.Zero(t, count(`SELECT count(*) FROM pg_namespace WHERE nspname = 'semel'`))
	require.Equal(t, 2, count(`SELECT count(*) FROM handled_events`))
}

// command is a command in the root of the repository, with DATABASE_URL set.
func command(t *testing.T, database, name string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "DATABASE_URL="+database)
	return cmd
}

// part returns what stands in text between begin and the next end.
func part(t *testing.T, text, begin, end string) string {
	t.Helper()
	_, rest, found := strings.Cut(text, begin)
	require.True(t, found, "there is no %q", begin)
	rest, _, _ = strings.Cut(rest, end)
	return rest
}

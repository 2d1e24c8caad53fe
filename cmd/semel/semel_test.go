package main_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/internal/pgtest"
)

var update = flag.Bool("update", false, "write the golden files instead of comparing with them")

// binary is the program as a user has it, built once for all tests.
var binary string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "semel")
	if err != nil {
		panic(err)
	}
	binary = filepath.Join(dir, "semel")
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		panic(string(out))
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// result is what a user sees of a run.
type result struct {
	stdout, stderr string
	code           int
}

// semel runs the program with $DATABASE_URL set to url, unset if that is empty.
func semel(t *testing.T, url string, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, args...)
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "DATABASE_URL=") && !strings.HasPrefix(variable, "PG") {
			cmd.Env = append(cmd.Env, variable)
		}
	}
	if url != "" {
		cmd.Env = append(cmd.Env, "DATABASE_URL="+url)
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	return result{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// works runs the program on the schema of db and returns its output.
func works(t *testing.T, db *pgtest.DB, args ...string) string {
	t.Helper()
	r := semel(t, db.URL, append(args, "-schema", db.Schema)...)
	require.Zero(t, r.code, r.stderr)
	require.Empty(t, r.stderr)
	return r.stdout
}

// requireGolden compares with testdata/name.
func requireGolden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o600))
	}
	want, err := os.ReadFile(path) //nolint:gosec // a name of ours
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

func TestHelp(t *testing.T) {
	t.Parallel()

	for name, args := range map[string][]string{
		"help.txt":         {"-h"},
		"help_migrate.txt": {"migrate", "-h"},
		"help_down.txt":    {"migrate", "down", "-h"},
		"help_grants.txt":  {"migrate", "grants", "-h"},
		"help_dlq.txt":     {"dlq", "--help"},
		"help_list.txt":    {"dlq", "list", "-h"},
		"help_show.txt":    {"dlq", "show", "-h"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			r := semel(t, "", args...)

			require.Zero(t, r.code)
			require.Empty(t, r.stderr)
			requireGolden(t, name, r.stdout)
		})
	}
}

func TestCommandLine_Refused(t *testing.T) {
	t.Parallel()

	const nowhere = "postgres://user:hunter2@127.0.0.1:1/db?sslmode=disable" // port 1: nobody listens
	tests := []struct {
		name string
		url  string
		args []string
		code int
		want string
	}{
		{name: "Nothing", code: 2, want: "semel needs a command: migrate, dlq\nRun \"semel -h\" for help."},
		{name: "UnknownCommand", args: []string{"migrat"}, code: 2, want: `semel has no command "migrat", but: migrate, dlq`},
		{name: "UnknownSubcommand", args: []string{"dlq", "lst"}, code: 2, want: "semel dlq has no command \"lst\", but: list, show\nRun \"semel dlq -h\" for help."},
		{name: "NoSubcommand", args: []string{"migrate"}, code: 2, want: "semel migrate needs a command: up, down, status, print, grants"},
		{name: "UnknownFlag", args: []string{"migrate", "up", "-nope"}, code: 2, want: "flag provided but not defined: -nope"},
		{name: "StrayArgument", args: []string{"migrate", "up", "now"}, code: 2, want: `semel migrate up takes no argument, but got "now"`},
		{name: "TerminalCodesInArgument", args: []string{"\x1b[2J"}, code: 2, want: `semel has no command "\x1b[2J"`},
		{name: "SchemaTooLong", args: []string{"migrate", "print", "-schema", strings.Repeat("x", 64)}, code: 2, want: "64 bytes, PostgreSQL allows 63"},
		{name: "UpTooFar", args: []string{"migrate", "up", "-to", "99"}, code: 2, want: "-to 99: the versions to go up to are 1 to 1"},
		{name: "DownWithoutTarget", args: []string{"migrate", "down", "-yes"}, code: 2, want: "say with -to how far to go down"},
		{name: "PrintWrongWay", args: []string{"migrate", "print", "-from", "1", "-to", "0"}, code: 2, want: "there is no way up from version 1 to 0"},
		{name: "GrantsToNobody", args: []string{"migrate", "grants"}, code: 2, want: "name a database role: -application, -operator or -relay"},
		{name: "GrantsToEverybody", args: []string{"migrate", "grants", "-operator", "public"}, code: 2, want: `-operator: impossible role "public"`},
		{name: "ShowWithoutID", args: []string{"dlq", "show"}, code: 2, want: "needs one argument"},
		{name: "ShowBadID", args: []string{"dlq", "show", "evt_1"}, code: 2, want: `"evt_1" is no id of a dead letter`},
		{name: "ListBadState", args: []string{"dlq", "list", "-state", "lost"}, code: 2, want: `-state "lost": it is one of open, replaying`},
		{name: "ListBadLimit", args: []string{"dlq", "list", "-limit", "0"}, code: 2, want: "-limit must be at least 1"},
		{name: "NoDatabase", args: []string{"migrate", "status"}, code: 2, want: "set $DATABASE_URL or give -database"},
		{name: "NoConnectionString", url: "postgres://user:hunter2@[bad/db", args: []string{"dlq", "list"}, code: 2, want: "read the connection string in $DATABASE_URL"},
		{name: "NoConnectionStringFlag", args: []string{"dlq", "list", "-database", "user password=hunter2"}, code: 2, want: "read the connection string in -database"},
		{name: "Unreachable", url: nowhere, args: []string{"dlq", "list"}, code: 1, want: `connect to database "db" on 127.0.0.1:1 as "user" (from $DATABASE_URL): `},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			r := semel(t, tt.url, tt.args...)

			require.Equal(t, tt.code, r.code, r.stderr)
			require.Empty(t, r.stdout)
			require.True(t, strings.HasPrefix(r.stderr, "semel: "), r.stderr)
			require.Contains(t, r.stderr, tt.want)
			require.NotContains(t, r.stderr, "hunter2")
		})
	}
}

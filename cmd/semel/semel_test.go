package main_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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

// named are the variables that name services, which a test sets itself.
var named = [...]string{"DATABASE_URL=", "PG", "KAFKA_", "AMQP_", "WEBHOOK_"}

// program is the program with $DATABASE_URL set to url, unset if that is empty.
func program(ctx context.Context, url string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, binary, args...)
	for _, variable := range os.Environ() {
		if !slices.ContainsFunc(named[:], func(name string) bool { return strings.HasPrefix(variable, name) }) {
			cmd.Env = append(cmd.Env, variable)
		}
	}
	if url != "" {
		cmd.Env = append(cmd.Env, "DATABASE_URL="+url)
	}
	return cmd
}

// semel runs the program to its end.
func semel(t *testing.T, url string, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := program(ctx, url, args...)
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
		"help_assign.txt":  {"dlq", "assign", "-h"},
		"help_letters.txt": {"dlq", "purge", "-h"},
		"help_replay.txt":  {"dlq", "replay", "-h"},
		"help_discard.txt": {"dlq", "discard", "-h"},
		"help_inbox.txt":   {"inbox", "-h"},
		"help_waits.txt":   {"inbox", "list", "-h"},
		"help_run_now.txt": {"inbox", "run-now", "-h"},
		"help_outbox.txt":  {"outbox", "-h"},
		"help_retry.txt":   {"outbox", "retry", "-h"},
		"help_archive.txt": {"outbox", "purge", "-h"},
		"help_restore.txt": {"outbox", "restore", "-h"},
		"help_purge.txt":   {"inbox", "purge", "-h"},
		"help_check.txt":   {"check", "-h"},
		"help_calls.txt":   {"calls", "-h"},
		"help_resolve.txt": {"calls", "resolve", "-h"},
		"help_relay.txt":   {"relay", "-h"},
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
		{name: "Nothing", code: 2, want: "semel needs a command: migrate, dlq, outbox, inbox, calls, check, doctor, relay\nRun \"semel -h\" for help."},
		{name: "UnknownCommand", args: []string{"migrat"}, code: 2, want: `semel has no command "migrat", but: migrate, dlq, outbox`},
		{name: "UnknownSubcommand", args: []string{"dlq", "lst"}, code: 2, want: "semel dlq has no command \"lst\", but: list, show, assign, replay, discard, purge\nRun \"semel dlq -h\" for help."},
		{name: "NoSubcommand", args: []string{"migrate"}, code: 2, want: "semel migrate needs a command: up, down, status, print, grants"},
		{name: "UnknownFlag", args: []string{"migrate", "up", "-nope"}, code: 2, want: "flag provided but not defined: -nope"},
		{name: "StrayArgument", args: []string{"migrate", "up", "now"}, code: 2, want: `semel migrate up takes no argument, but got "now"`},
		{name: "TerminalCodesInArgument", args: []string{"\x1b[2J"}, code: 2, want: `semel has no command "\x1b[2J"`},
		{name: "SchemaTooLong", args: []string{"migrate", "print", "-schema", strings.Repeat("x", 64)}, code: 2, want: "64 bytes, PostgreSQL allows 63"},
		{name: "UpTooFar", args: []string{"migrate", "up", "-to", "99"}, code: 2, want: "-to 99: the versions to go up to are 1 to "},
		{name: "DownWithoutTarget", args: []string{"migrate", "down", "-yes"}, code: 2, want: "say with -to how far to go down"},
		{name: "PrintWrongWay", args: []string{"migrate", "print", "-from", "1", "-to", "0"}, code: 2, want: "there is no way up from version 1 to 0"},
		{name: "GrantsToNobody", args: []string{"migrate", "grants"}, code: 2, want: "name a database role: -application, -operator, -relay or -writer"},
		{name: "GrantsToEverybody", args: []string{"migrate", "grants", "-operator", "public"}, code: 2, want: `-operator: impossible role "public"`},
		{name: "ShowWithoutID", args: []string{"dlq", "show"}, code: 2, want: "needs one argument"},
		{name: "ShowBadID", args: []string{"dlq", "show", "evt_1"}, code: 2, want: `"evt_1" is no id of a dead letter`},
		{name: "ListBadState", args: []string{"dlq", "list", "-state", "lost"}, code: 2, want: `-state "lost": it is one of open, replaying`},
		{name: "ListBadLimit", args: []string{"dlq", "list", "-limit", "0"}, code: 2, want: "-limit must be at least 1"},
		{name: "ListTwoOwners", args: []string{"dlq", "list", "-owner", "ann", "-unowned"}, code: 2, want: "-owner and -unowned exclude each other"},
		{name: "AssignNothing", args: []string{"dlq", "assign", "-to", "ann"}, code: 2, want: "semel dlq assign needs the ids of dead letters"},
		{name: "AssignToWhom", args: []string{"dlq", "assign", "1", "-yes"}, code: 2, want: "say with -to who looks after them"},
		{name: "AssignBadID", args: []string{"dlq", "assign", "1", "evt_1", "-to", "ann"}, code: 2, want: `"evt_1" is no id of a dead letter`},
		{name: "AssignBadOwner", args: []string{"dlq", "assign", "1", "-to", "ann\x1b[2J", "-yes"}, code: 2, want: "-to: impossible owner"},
		{name: "ReplayNothing", args: []string{"dlq", "replay", "-yes"}, code: 2, want: "name dead letters by their ids, or choose them with -consumer, -reason, -type or -owner"},
		{name: "ReplayBoth", args: []string{"dlq", "replay", "1", "-consumer", "shipping"}, code: 2, want: "not both"},
		{name: "ReplayBadID", args: []string{"dlq", "replay", "0"}, code: 2, want: `"0" is no id of a dead letter`},
		{name: "ReplayBadRate", args: []string{"dlq", "replay", "-consumer", "shipping", "-rate", "0/s"}, code: 2, want: "it must be like 50/s or 30/m"},
		{name: "ReplayBadUnit", args: []string{"dlq", "replay", "-consumer", "shipping", "-rate", "5/h"}, code: 2, want: "it must be like 50/s or 30/m"},
		{name: "ReplayBadLimit", args: []string{"dlq", "replay", "-consumer", "shipping", "-limit", "-1"}, code: 2, want: "-limit must not be negative"},
		{name: "ReplayNeverGoesOn", args: []string{"dlq", "replay", "-consumer", "shipping", "-stop-after", "0"}, code: 2, want: "-stop-after must be at least 1, or -1"},
		{name: "ReplayByNobody", args: []string{"dlq", "replay", "1", "-by", "ann\x1b[2J"}, code: 2, want: `-by "ann\x1b[2J": a name is text`},
		{name: "ReopenWhich", args: []string{"dlq", "replay", "-reopen", "-consumer", "shipping"}, code: 2, want: "-reopen needs the ids of dead letters"},
		{name: "DiscardLettersNothing", args: []string{"dlq", "discard", "-yes"}, code: 2, want: "semel dlq discard needs the ids of dead letters"},
		{name: "StoredBadState", args: []string{"inbox", "list", "-state", "lost"}, code: 2, want: `-state "lost": it is one of ready, delayed, taken, behind, parked, all`},
		{name: "StoredBadLimit", args: []string{"inbox", "list", "-limit", "0"}, code: 2, want: "-limit must be at least 1"},
		{name: "StoredWithoutConsumer", args: []string{"inbox", "show", "evt_1"}, code: 2, want: "semel inbox show needs -consumer and one argument"},
		{name: "StoredTwice", args: []string{"inbox", "show", "evt_1", "-seq", "1"}, code: 2, want: "not both"},
		{name: "RunNowNothing", args: []string{"inbox", "run-now", "-consumer", "shipping"}, code: 2, want: "semel inbox run-now needs -consumer and the ids of messages"},
		{name: "LettersWithoutAge", args: []string{"dlq", "purge", "-yes"}, code: 2, want: "say with -older what is old"},
		{name: "LettersRedactedTooLate", args: []string{"dlq", "purge", "-older", "30d", "-redact-after", "30d", "-yes"}, code: 2, want: "-redact-after must be less than -older"},
		{name: "SecretAsArgument", args: []string{"relay", "amqp://user:hunter2@localhost"}, code: 2, want: `semel relay takes no argument, but got "amqp://..."`},
		{name: "SecretAsCommand", args: []string{"password=hunter2"}, code: 2, want: `semel has no command "password..."`},
		{name: "EventBadState", args: []string{"outbox", "list", "-state", "lost"}, code: 2, want: `-state "lost": it is one of pending, waiting, quarantined, published, discarded, all`},
		{name: "EventTwoStates", args: []string{"outbox", "list", "-state", "pending", "-quarantined"}, code: 2, want: "-quarantined and -state pending exclude each other"},
		{name: "EventBadAge", args: []string{"outbox", "list", "-older", "yesterday"}, code: 2, want: "it must be like 10m, 36h or 14d"},
		{name: "EventAgeInTheFuture", args: []string{"outbox", "list", "-older", "-1h"}, code: 2, want: "it must be like 10m, 36h or 14d"},
		{name: "EventBadLimit", args: []string{"outbox", "list", "-limit", "0"}, code: 2, want: "-limit must be at least 1"},
		{name: "EventBadID", args: []string{"outbox", "show", "evt_1"}, code: 2, want: `"evt_1" is no id of an event: it is a UUID`},
		{name: "EventWithoutID", args: []string{"outbox", "show"}, code: 2, want: "needs one argument"},
		{name: "RetryNothing", args: []string{"outbox", "retry", "-type", "order"}, code: 2, want: "name events by their ids, or choose those in quarantine with -quarantined"},
		{name: "RetryBoth", args: []string{"outbox", "retry", "0193c000-0000-7000-8000-000000000001", "-quarantined"}, code: 2, want: "not both"},
		{name: "DiscardBadID", args: []string{"outbox", "discard", "1"}, code: 2, want: `"1" is no id of an event`},
		{name: "PurgeWithoutAge", args: []string{"outbox", "purge", "-yes"}, code: 2, want: "say with -older what is old"},
		{name: "RestoreNothing", args: []string{"outbox", "restore"}, code: 2, want: "name the files to restore"},
		{name: "RestoreMissing", args: []string{"outbox", "restore", "nowhere.jsonl.gz"}, code: 1, want: "nowhere.jsonl.gz: no such file"},
		{name: "PurgeBadBatch", args: []string{"outbox", "purge", "-older", "1d", "-batch", "0"}, code: 2, want: "-batch must be at least 1"},
		{name: "PurgeYoung", args: []string{"inbox", "purge", "-older", "23h", "-yes"}, code: 2, want: "-older 23h0m0s: what was handled is kept for at least 24h0m0s"},
		{name: "CallsBadState", args: []string{"calls", "list", "-state", "lost"}, code: 2, want: `-state "lost": it is one of open, started, done, failed, unknown, ready, all`},
		{name: "CallsBadLimit", args: []string{"calls", "list", "-limit", "0"}, code: 2, want: "-limit must be at least 1"},
		{name: "CallWithoutConsumer", args: []string{"calls", "show", "evt_1"}, code: 2, want: "semel calls show needs -consumer and one argument"},
		{name: "ResolveNothing", args: []string{"calls", "resolve", "-consumer", "billing", "-done"}, code: 2, want: "semel calls resolve needs -consumer and the ids of messages"},
		{name: "ResolveHow", args: []string{"calls", "resolve", "-consumer", "billing", "evt_1", "-yes"}, code: 2, want: "say what you found out: -done, -not-done or -retry"},
		{name: "ResolveTwice", args: []string{"calls", "resolve", "-consumer", "billing", "evt_1", "-done", "-retry"}, code: 2, want: "say what you found out"},
		{name: "ResolveResultOfWhat", args: []string{"calls", "resolve", "-consumer", "billing", "evt_1", "-retry", "-result", "f"}, code: 2, want: "-result is for one message, with -done"},
		{name: "ResolveResultOfWhich", args: []string{"calls", "resolve", "-consumer", "billing", "evt_1", "evt_2", "-done", "-result", "f"}, code: 2, want: "-result is for one message, with -done"},
		{name: "ResolveByNobody", args: []string{"calls", "resolve", "-consumer", "billing", "evt_1", "-retry", "-by", "ann\x1b[2J"}, code: 2, want: `-by "ann\x1b[2J": a name is text`},
		{name: "CheckNegativeUnknown", args: []string{"check", "-max-unknown-calls", "-1"}, code: 1, want: "must not be negative"},
		{name: "CheckNothing", args: []string{"check"}, code: 1, want: "say what to check: -max-pending-age, -max-quarantined, -max-dead, -max-unowned, -max-unknown-calls"},
		{name: "CheckNegative", args: []string{"check", "-max-dead", "-1"}, code: 1, want: "must not be negative"},
		{name: "CheckNegativeUnowned", args: []string{"check", "-max-unowned", "-1"}, code: 1, want: "must not be negative"},
		{name: "CheckUnknownFlag", args: []string{"check", "-max-ded", "1"}, code: 1, want: "flag provided but not defined"},
		{name: "CheckNoDatabase", args: []string{"check", "-max-dead", "1"}, code: 1, want: "set $DATABASE_URL or give -database"},
		{name: "CheckUnreachable", url: nowhere, args: []string{"check", "-max-dead", "1"}, code: 1, want: `connect to database "db"`},
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

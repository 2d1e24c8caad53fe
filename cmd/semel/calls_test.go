package main_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/dedup"
	"github.com/semel-go/semel/dedup/calls"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
	"github.com/semel-go/semel/internal/pgtest"
)

// ledger fills db with a call of each kind.
func ledger(t *testing.T, db *pgtest.DB) {
	t.Helper()
	require.NoError(t, dedup.NewStore(db.Schema).Register(t.Context(), db.Pool, "billing"))
	for _, sql := range []string{
		`INSERT INTO calls (consumer_id, message_id, message_text, step, idempotency_key, state, generation, attempts, created_at, updated_at, sent_first_at, deadline, error, result, result_codec, resolved_by)
		SELECT consumer_id('billing'), message_id(id), id, step, 'key-' || id, state, generation, 1, at::timestamptz, at::timestamptz + interval '1 minute', at::timestamptz, at::timestamptz + interval '15 seconds', error, result, codec, by
		FROM (VALUES
			('evt_1', 'create-invoice', 4, 1, '2026-03-01 12:00Z', E'nobody can tell whether the call was done: reset\x1b[2J', NULL::bytea, NULL, NULL),
			('evt_2', 'create-invoice', 1, 1, '2026-03-01 12:01Z', 'no answer', NULL, NULL, NULL),
			('evt_3', 'create-invoice', 2, 1, '2026-03-01 12:02Z', NULL, '{"number":7}', NULL, NULL),
			('evt_3', 'send-mail', 2, 1, '2026-03-01 12:03Z', 'it has 2000000 bytes, at most 1048576 are allowed', NULL, NULL, NULL),
			('evt_4', 'create-invoice', 3, 2, '2026-03-01 12:04Z', '422: no such customer', NULL, NULL, 'ann@desk'),
			('evt_5', 'create-invoice', 2, 1, '2026-03-01 12:05Z', NULL, '\xff00', NULL, NULL),
			('evt_6', 'create-invoice', 2, 1, '2026-03-01 12:06Z', NULL, '\x0102', 'key-1', NULL),
			('evt_7', 'create-invoice', 4, 1, '2026-03-01 12:07Z', NULL, NULL, NULL, NULL),
			('evt_7', 'send-mail', 4, 1, '2026-03-01 12:08Z', NULL, NULL, NULL, NULL)
		) AS v (id, step, state, generation, at, error, result, codec, by)`,
		`INSERT INTO calls (consumer_id, message_id, step, idempotency_key, attempts, created_at, updated_at, sent_first_at, deadline, lease_until, lease_owner)
		SELECT consumer_id('billing'), '0193c000-0000-7000-8000-000000000001', 'create-invoice', 'key-8', 1, at, at, at, '2200-01-01 00:00Z', '2200-01-01 00:00Z', gen_random_uuid()
		FROM (VALUES ('2026-03-01 12:09Z'::timestamptz)) AS v (at)`,
		`INSERT INTO dead_letters (consumer_id, message_id, message_text, fingerprint, reason, state)
		VALUES (consumer_id('billing'), message_id('evt_1'), 'evt_1', 1, 'call_unknown', 'open')`,
	} {
		_, err := db.Pool.Exec(t.Context(), sql)
		require.NoError(t, err)
	}
}

// Somebody has parked a call by hand, for ever, and set its other times to what is
// none: people see it among those that are open, and can decide on it.
func TestCalls_ParkedByHand(t *testing.T) {
	t.Parallel()

	db := pgtest.New(t)
	ledger(t, db)
	_, err := db.Pool.Exec(t.Context(), `UPDATE calls SET lease_until = 'infinity', created_at = 'infinity', updated_at = '-infinity', sent_first_at = 'infinity' WHERE message_text = 'evt_2'`)
	require.NoError(t, err)

	require.Regexp(t, `evt_2 +create-invoice +started, under way +1 +1 +infinity, set by hand`, works(t, db, "calls", "list"))
	shown := works(t, db, "calls", "show", "-consumer", "billing", "evt_2")
	require.Regexp(t, `written +infinity, set by hand\n`, shown)
	require.Regexp(t, `changed +-infinity, set by hand\n`, shown)
	require.Regexp(t, `in hand until +infinity, set by hand\n`, shown)
	require.Contains(t, works(t, db, "calls", "show", "-json", "-consumer", "billing", "evt_2"), `"lease_until": "9999-12-31T23:59:59Z"`)

	_, err = db.Pool.Exec(t.Context(), `UPDATE calls SET deadline = clock_timestamp() + interval '1 hour' WHERE message_text = 'evt_2'`)
	require.NoError(t, err)
	r := semel(t, db.URL, "calls", "resolve", "-consumer", "billing", "evt_2", "-not-done", "-yes", "-schema", db.Schema)
	require.Equal(t, 1, r.code)
	require.Regexp(t, `decide after 20[2-9]\d-`, r.stdout, "its last attempt may be under way")
	_, err = db.Pool.Exec(t.Context(), `UPDATE calls SET deadline = 'infinity' WHERE message_text = 'evt_2'`)
	require.NoError(t, err)
	require.Contains(t, works(t, db, "calls", "resolve", "-consumer", "billing", "evt_2", "-not-done", "-yes"), "1 of 1 taken for not done")
}

func TestCalls_Look(t *testing.T) {
	t.Parallel()

	db := pgtest.New(t)
	require.Equal(t, "no calls\n", works(t, db, "calls", "list"))
	ledger(t, db)

	for name, args := range map[string][]string{
		"calls_list.txt":          {"calls", "list"},
		"calls_list_all.txt":      {"calls", "list", "-state", "all"},
		"calls_list_done.txt":     {"calls", "list", "-state", "done", "-step", "create-invoice"},
		"calls_list_limit.txt":    {"calls", "list", "-state", "all", "-limit", "2"},
		"calls_list.json":         {"calls", "list", "-json", "-state", "unknown", "-consumer", "billing", "-limit", "3"},
		"calls_show.txt":          {"calls", "show", "-consumer", "billing", "evt_3"},
		"calls_show_unknown.txt":  {"calls", "show", "-consumer", "billing", "evt_1", "-step", "create-invoice"},
		"calls_show_resolved.txt": {"calls", "show", "-consumer", "billing", "evt_4"},
		"calls_show_binary.txt":   {"calls", "show", "-consumer", "billing", "evt_5"},
		"calls_show_encoded.txt":  {"calls", "show", "-consumer", "billing", "evt_6"},
		"calls_show_held.txt":     {"calls", "show", "-consumer", "billing", "0193c000-0000-7000-8000-000000000001"},
		"calls_show.json":         {"calls", "show", "-json", "-consumer", "billing", "evt_3"},
		"calls_show_binary.json":  {"calls", "show", "-json", "-consumer", "billing", "evt_5"},
		"calls_show_encoded.json": {"calls", "show", "-json", "-consumer", "billing", "evt_6"},
	} {
		t.Run(name, func(t *testing.T) { requireGolden(t, name, works(t, db, args...)) })
	}

	// The id under which it is claimed names a message too.
	require.Equal(t, works(t, db, "calls", "show", "-consumer", "billing", "evt_1"),
		works(t, db, "calls", "show", "-consumer", "billing", dedup.MessageID("evt_1").String()))

	operator := as(t, db, "-operator")
	require.Contains(t, works(t, operator, "calls", "list"), "evt_1")
	require.Contains(t, works(t, operator, "calls", "show", "-consumer", "billing", "evt_1"), "unknown")
	r := semel(t, operator.URL, "calls", "resolve", "-consumer", "billing", "evt_1", "-retry", "-yes", "-schema", db.Schema)
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stderr, "permission denied")
}

func TestCalls_Resolve(t *testing.T) {
	t.Parallel()

	db := pgtest.New(t)
	ledger(t, db)
	file := filepath.Join(t.TempDir(), "result")
	require.NoError(t, os.WriteFile(file, []byte(`{"number":8}`), 0o600))
	resolve := func(args ...string) result {
		return semel(t, db.URL, append([]string{"calls", "resolve", "-consumer", "billing", "-by", "ann@desk", "-schema", db.Schema}, args...)...)
	}

	r := resolve("evt_1", "-done", "-result", file)
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stderr, "-yes")
	requireGolden(t, "calls_resolve.txt", r.stdout)
	r = resolve("evt_1", "-done", "-result", file, "-yes")
	require.Zero(t, r.code, r.stderr)
	requireGolden(t, "calls_resolve_done.txt", r.stdout)
	var stored, by string
	require.NoError(t, db.Pool.QueryRow(t.Context(), `SELECT convert_from(result, 'UTF8'), resolved_by FROM calls WHERE message_text = 'evt_1' AND state = 2 AND error IS NULL`).Scan(&stored, &by))
	require.Equal(t, [2]string{`{"number":8}`, "ann@desk"}, [2]string{stored, by})

	r = resolve("evt_7", "-step", "send-mail", "-not-done", "-yes")
	require.Zero(t, r.code, r.stderr)
	requireGolden(t, "calls_resolve_not_done.txt", r.stdout)
	r = resolve("evt_7", "evt_2", "-retry", "-yes") // the other step is all that is left
	require.Zero(t, r.code, r.stderr)
	requireGolden(t, "calls_resolve_retry.txt", r.stdout)
	r = resolve("evt_3", "-step", "send-mail", "-done", "-yes", "-json")
	require.Zero(t, r.code, r.stderr)
	requireGolden(t, "calls_resolve.json", r.stdout)

	// What there is nothing to decide about, or is under way, stays.
	r = resolve("evt_1", "evt_2", "evt_4", "evt_5", "0193c000-0000-7000-8000-000000000001", "-done", "-yes")
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stderr, "5 of 5 calls were not changed")
	requireGolden(t, "calls_resolve_refused.txt", r.stdout)
}

// Two persons decide at once, and differently: one of them does.
func TestCalls_ResolveTwice(t *testing.T) {
	t.Parallel()

	db := pgtest.New(t)
	ledger(t, db)
	var deciding sync.WaitGroup
	var codes [2]int
	for i, decision := range []string{"-done", "-not-done"} {
		deciding.Go(func() {
			codes[i] = semel(t, db.URL, "calls", "resolve", "-consumer", "billing", "evt_1", decision, "-yes", "-schema", db.Schema).code
		})
	}
	deciding.Wait()
	require.ElementsMatch(t, []int{0, 1}, codes)
}

func TestCalls_NotFound(t *testing.T) {
	t.Parallel()

	db := pgtest.New(t)
	ledger(t, db)
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"list", "-consumer", "biling"}, `no consumer "biling": there are billing`},
		{[]string{"show", "-consumer", "billing", "evt_9"}, `message "evt_9" of consumer "billing" has made no call`},
		{[]string{"resolve", "-consumer", "billing", "evt_1", "evt_9", "-retry", "-yes"}, `message "evt_9" of consumer "billing" has made no call`},
		{[]string{"resolve", "-consumer", "billing", "evt_1", "-step", "pay", "-retry", "-yes"}, `has made no call of step "pay"`},
		{[]string{"resolve", "-consumer", "billing", "evt_1", "-done", "-result", "/nowhere", "-yes"}, "read the result: open /nowhere"},
	} {
		r := semel(t, db.URL, append(append([]string{"calls"}, tt.args...), "-schema", db.Schema)...)
		require.Equal(t, 1, r.code)
		require.Contains(t, r.stderr, tt.want)
	}
	r := semel(t, db.URL, "calls", "resolve", "-consumer", "billing", "evt_7", "-retry", "-yes", "-schema", db.Schema)
	require.Equal(t, 2, r.code)
	require.Contains(t, r.stderr, `message "evt_7" waits for several calls: say with -step which: send-mail, create-invoice`)
	r = semel(t, db.URL, "check", "-max-unknown-calls", "2", "-schema", db.Schema)
	require.Equal(t, 2, r.code)
	require.Equal(t, "OVER unknown calls 3, limit 2\n", r.stdout)
	require.Equal(t, "ok   unknown calls 3, limit 3\n", works(t, db, "check", "-max-unknown-calls", "3"))
}

// A call of which nobody knows the end is a dead letter with a reason of its own; a
// person decides on the call, replays the message, and the provider has done it once.
func TestCalls_FromUnknownToProcessed(t *testing.T) {
	t.Parallel()

	for name, want := range map[string]int{"-done": 1, "-not-done": 2, "-retry": 2} {
		t.Run(strings.TrimPrefix(name, "-"), func(t *testing.T) {
			t.Parallel()

			s := newShop(t)
			silent := slog.New(slog.DiscardHandler)
			l, err := calls.New(s.db.Pool, calls.Config{Schema: s.db.Schema, Grace: time.Millisecond, Logger: silent})
			require.NoError(t, err)
			made := 0
			prepare := func(ctx context.Context, msg *handler.Message) error {
				_, err := l.Do(ctx, msg, "create-invoice", func(context.Context, string) ([]byte, error) {
					if made++; made == 1 {
						return nil, errors.New("connection reset")
					}
					return []byte("7"), nil
				}, calls.Options{KeyTTL: -1, Timeout: 2 * time.Second})
				return err
			}
			in, err := inbox.New(s.db.Pool, "billing", func(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
				if _, err := l.Result(ctx, tx, msg, "create-invoice"); err != nil {
					return err
				}
				_, err := tx.Exec(ctx, `INSERT INTO effects (id) VALUES ($1)`, msg.ID)
				return err
			}, inbox.Config{Schema: s.db.Schema, Prepare: prepare, Logger: silent})
			require.NoError(t, err)

			outcome, err := in.Process(t.Context(), &handler.Message{ID: "evt_1"})
			require.NoError(t, err)
			require.Equal(t, handler.Dead, outcome)
			letter := s.letter(t, 1)
			require.Equal(t, "call_unknown", string(letter.Reason))
			require.Equal(t, 1, made)

			require.Eventually(t, func() bool { // the call may be under way for a moment
				r := s.semel(t, "calls", "resolve", "-consumer", "billing", "evt_1", name, "-yes")
				return r.code == 0 && strings.Contains(r.stdout, "semel dlq replay 1 -yes")
			}, time.Minute, tick)
			outcome, err = in.Replay(t.Context(), letter.ID)
			require.NoError(t, err)
			require.Equal(t, handler.Processed, outcome)
			require.Equal(t, []string{"evt_1"}, s.effects(t))
			require.Equal(t, want, made)

			var list []map[string]any
			require.NoError(t, json.Unmarshal([]byte(works(t, s.db, "calls", "list", "-json", "-state", "done")), &list))
			require.Len(t, list, 1)
			require.Equal(t, "resolved", list[0]["dead_letter_state"])
		})
	}
}

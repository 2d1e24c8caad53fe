package main_test

import (
	"context"
	"crypto/rand"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/internal/pgtest"
)

// as makes a database role and returns db as that role sees it.
func as(t *testing.T, db *pgtest.DB, flag string) *pgtest.DB {
	t.Helper()
	role, password := "semel_test_"+strings.ToLower(rand.Text()[:16]), rand.Text()
	_, err := db.Pool.Exec(t.Context(), `CREATE ROLE `+role+` LOGIN PASSWORD '`+password+`'`)
	require.NoError(t, err)
	t.Cleanup(func() {
		_, err := db.Pool.Exec(context.WithoutCancel(t.Context()), `DROP OWNED BY `+role+`; DROP ROLE `+role)
		require.NoError(t, err)
	})
	_, err = db.Pool.Exec(t.Context(), works(t, db, "migrate", "grants", flag, role))
	require.NoError(t, err)
	u, err := url.Parse(db.URL)
	require.NoError(t, err)
	u.User = url.UserPassword(role, password)
	return &pgtest.DB{Schema: db.Schema, URL: u.String()}
}

func TestMigrateGrants(t *testing.T) {
	t.Parallel()

	r := semel(t, "", "migrate", "grants", "-application", "shop", "-operator", `on "call`, "-relay", "shop_relay", "-writer", "legacy")
	require.Zero(t, r.code, r.stderr)
	requireGolden(t, "grants.txt", r.stdout)
}

// An operator sees all that there is, and can migrate nothing.
func TestMigrateGrants_Operator(t *testing.T) {
	t.Parallel()

	db := pgtest.New(t)
	deadLetters(t, db)
	events(t, db)
	_, err := db.Pool.Exec(t.Context(), `INSERT INTO processed_messages (consumer_id, message_id, outcome, processed_at) VALUES (1, gen_random_uuid(), 1, '2026-03-01')`)
	require.NoError(t, err)
	_, err = db.Pool.Exec(t.Context(), `INSERT INTO inbox_messages (consumer_id, message_id, message_text, ready_at, stored_at)
		VALUES (855548666, message_id('evt_9'), 'evt_9', '2200-01-01', clock_timestamp() - interval '40 days')`)
	require.NoError(t, err)
	operator := as(t, db, "-operator")

	for _, args := range [][]string{
		{"migrate", "status"},
		{"dlq", "list", "-state", "all"},
		{"dlq", "list", "-consumer", "shipping", "-json"},
		{"dlq", "show", "1"},
		{"outbox", "status"},
		{"outbox", "list", "-json"},
		{"outbox", "show", eventID(1)},
		{"inbox", "status"},
		{"inbox", "list"},
		{"inbox", "show", "-consumer", "shipping", "evt_9"},
		{"check", "-max-dead", "9", "-max-unowned", "9", "-max-quarantined", "9"},
	} {
		require.Equal(t, works(t, db, args...), works(t, operator, args...))
	}

	r := semel(t, operator.URL, "migrate", "down", "-to", "0", "-yes", "-schema", db.Schema)
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stderr, "the database role lacks a right")
	for _, args := range [][]string{
		{"outbox", "retry", eventID(3), "-yes"},
		{"outbox", "discard", eventID(3), "-yes"},
		{"outbox", "purge", "-older", "1h", "-yes"},
		{"inbox", "purge", "-older", "1d", "-yes"},
		{"dlq", "assign", "1", "-to", "ann", "-yes"},
		{"dlq", "purge", "-older", "1d", "-yes"},
		{"dlq", "replay", "1", "-yes"},
		{"dlq", "replay", "-consumer", "shipping", "-yes"},
		{"dlq", "replay", "-reopen", "4", "-yes"},
		{"dlq", "discard", "1", "-yes"},
		{"inbox", "run-now", "-consumer", "shipping", "evt_9", "-yes"},
	} {
		r := semel(t, operator.URL, append(args, "-schema", db.Schema)...)
		require.Equal(t, 1, r.code, args)
		require.Contains(t, r.stderr, "permission denied")
	}
	require.Contains(t, works(t, db, "dlq", "list"), "evt_1")
}

// An application may decide on what its consumers could not handle.
func TestMigrateGrants_ApplicationDecides(t *testing.T) {
	t.Parallel()

	s := newShop(t)
	s.send(t, handler.Dead, "a", "a1")
	s.send(t, handler.Dead, "b", "b1")
	s.send(t, handler.Stored, "late", "d1")
	application := as(t, s.db, "-application")
	require.Contains(t, works(t, application, "dlq", "replay", "1", "-yes"), "1 of 1 are handled again\n")
	require.Contains(t, works(t, application, "dlq", "replay", "-consumer", "shipping", "-yes"), "1 of 1 are handled again: ")
	require.Contains(t, works(t, application, "dlq", "discard", "2", "-yes"), "1 of 1 discarded\n")
	require.Contains(t, works(t, application, "dlq", "replay", "-reopen", "2", "-yes"), "1 of 1 are handled again as new messages\n")
	require.Contains(t, works(t, application, "inbox", "run-now", "-consumer", "shipping", "d1", "-yes"), "1 of 1 made ready\n")
}

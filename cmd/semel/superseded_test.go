package main_test

import (
	"encoding/json"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/dedup"
	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
)

// A replay of what was overtaken meanwhile has no effect, and says so: in the bulk, in
// its JSON, and when a person looks at the dead letter.
func TestDLQ_ReplaySuperseded(t *testing.T) {
	t.Parallel()

	s := newShop(t)
	guarded := dedup.NewStore(s.db.Schema).VersionGuard(dedup.GuardConfig{})(s.handle)
	in, err := inbox.New(s.db.Pool, "shipping", guarded, inbox.Config{Schema: s.db.Schema, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	send := func(id, key string, version int64, want handler.Outcome) {
		t.Helper()
		outcome, err := in.Process(t.Context(), &handler.Message{ID: id, Type: "order.updated", Key: []byte(key), Version: version})
		require.NoError(t, err)
		require.Equal(t, want, outcome)
	}
	send("m1", "order-1", 1, handler.Dead)
	send("m2", "order-2", 1, handler.Dead)
	send("m3", "order-3", 1, handler.Dead)
	s.mended.Store(true)
	send("m4", "order-1", 2, handler.Processed)
	send("m5", "order-3", 2, handler.Processed)
	s.exec(t, `UPDATE dead_letters SET first_failed_at = '2026-03-01 12:00Z', last_failed_at = '2026-03-01 12:00Z'`)

	// The last of the bulk does not begin before the others have ended.
	begins, err := s.db.Pool.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = begins.Rollback(t.Context()) }()
	_, err = begins.Exec(t.Context(), `SELECT FROM dead_letters WHERE id = 3 FOR UPDATE`)
	require.NoError(t, err)
	ended := make(chan result, 1)
	go func() { ended <- s.semel(t, "dlq", "replay", "-consumer", "shipping", "-rate", "1000/s", "-yes") }()
	letters := dlq.NewStore(s.db.Schema)
	for _, id := range []int64{1, 2} {
		require.Eventually(t, func() bool {
			l, err := letters.Load(t.Context(), s.db.Pool, id)
			return err == nil && l.State == dlq.Replaying
		}, deadline, tick)
		_, err = in.Replay(t.Context(), id) // somebody works the inbox
		require.NoError(t, err)
	}
	require.NoError(t, begins.Commit(t.Context()))
	r := <-ended
	require.Zero(t, r.code, r.stderr)
	requireGolden(t, "replay_superseded.txt", r.stdout)

	require.Contains(t, works(t, s.db, "dlq", "show", "1"), "\nstate           resolved\noutcome         superseded: something newer had been handled, so this had no effect\n")
	require.Contains(t, works(t, s.db, "dlq", "show", "2"), "\nstate           resolved\noutcome         processed\n")
	require.NotContains(t, works(t, s.db, "dlq", "show", "3"), "outcome")
	var shown struct{ Outcome string }
	require.NoError(t, json.Unmarshal([]byte(works(t, s.db, "dlq", "show", "1", "-json")), &shown))
	require.Equal(t, "superseded", shown.Outcome)

	outcome, err := in.Replay(t.Context(), 3)
	require.NoError(t, err)
	require.Equal(t, handler.Superseded, outcome)
	require.ElementsMatch(t, []string{"m2", "m4", "m5"}, s.effects(t))
}

package dedup_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/dedup"
)

// addCall writes a call of a message that changed last so many days ago.
func (b *purgeBundle) addCall(t *testing.T, consumer, id, step, state string, days int) {
	t.Helper()
	b.exec(t, `INSERT INTO calls (consumer_id, message_id, message_text, step, idempotency_key, state, updated_at)
		SELECT consumer_id($1), message_id($2), $2, $3, 'key', s, now() - make_interval(days => $5)
		FROM generate_series(1, 5) AS s WHERE call_state_name(s::smallint) = $4`, consumer, id, step, state, days)
}

func (b *purgeBundle) callsLeft(t *testing.T) []string {
	t.Helper()
	return b.strings(t, `SELECT message_text || ' ' || step FROM calls ORDER BY 1`)
}

// A call is kept as long as its message, and a message as long as a call of it of
// which nobody knows the end.
func TestPurge_Calls(t *testing.T) {
	t.Parallel()

	b := setupPurge(t)
	for _, state := range []string{"started", "done", "failed", "unknown", "ready"} {
		b.add(t, "shipping", state, 1, 40)
		b.addCall(t, "shipping", state, "pay", state, 40)
	}
	b.add(t, "shipping", "two", 1, 40)
	b.addCall(t, "shipping", "two", "pay", "done", 40)
	b.addCall(t, "shipping", "two", "tell", "unknown", 40)
	b.add(t, "shipping", "both", 1, 40)
	b.addCall(t, "shipping", "both", "pay", "done", 40)
	b.addCall(t, "shipping", "both", "tell", "failed", 1)
	b.add(t, "shipping", "young", 1, 20)
	b.addCall(t, "shipping", "young", "pay", "done", 40)
	b.addCall(t, "billing", "done", "pay", "done", 40) // another consumer's

	deleted, err := b.store.Purge(t.Context(), b.Pool, month, dedup.PurgeConfig{Consumer: "shipping"})

	require.NoError(t, err)
	require.Equal(t, int64(4), deleted)
	require.Equal(t, []string{"shipping started", "shipping two", "shipping unknown", "shipping young"}, b.left(t))
	require.Equal(t, []string{"done pay", "started pay", "two pay", "two tell", "unknown pay", "young pay"}, b.callsLeft(t))
}

// What is left of messages without a row, for one because it was deleted by hand.
func TestPurgeCalls(t *testing.T) {
	t.Parallel()

	b := setupPurge(t)
	for _, state := range []string{"started", "done", "failed", "unknown", "ready"} {
		b.addCall(t, "shipping", state, "pay", state, 40)
	}
	b.addCall(t, "shipping", "young", "pay", "done", 20)
	b.addCall(t, "billing", "done", "tell", "done", 40)
	b.addCall(t, "shipping", "held", "pay", "ready", 40)
	b.exec(t, `UPDATE calls SET lease_until = now() WHERE message_text = 'held'`)
	b.add(t, "shipping", "kept", 1, 20)
	b.addCall(t, "shipping", "kept", "pay", "done", 40)
	purge := func(cfg dedup.PurgeConfig) int64 {
		deleted, err := b.store.PurgeCalls(t.Context(), b.Pool, month, cfg)
		require.NoError(t, err)
		return deleted
	}

	require.Equal(t, int64(3), purge(dedup.PurgeConfig{Consumer: "shipping", Batch: 1}))
	require.Equal(t, []string{"done tell", "held pay", "kept pay", "started pay", "unknown pay", "young pay"}, b.callsLeft(t))
	require.Equal(t, int64(1), purge(dedup.PurgeConfig{}))
	_, err := b.store.PurgeCalls(t.Context(), b.Pool, time.Hour, dedup.PurgeConfig{})
	require.ErrorContains(t, err, "it must be at least 24h0m0s")
}

// A call that somebody takes in hand while a purge has found it already is not deleted:
// else nobody would know that it is being made.
func TestPurgeCalls_TakenMeanwhile(t *testing.T) {
	t.Parallel()

	b := setupPurge(t)
	b.addCall(t, "shipping", "order", "pay", "ready", 40)
	tx, err := b.Pool.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(context.Background()) }()
	_, err = tx.Exec(t.Context(), `UPDATE calls SET lease_until = now() + interval '15 s', epoch = epoch + 1`)
	require.NoError(t, err)
	type purged struct {
		n   int64
		err error
	}
	done := make(chan purged, 1)
	go func() {
		n, err := b.store.PurgeCalls(context.Background(), b.Pool, month, dedup.PurgeConfig{})
		done <- purged{n, err}
	}()
	require.Eventually(t, func() bool {
		return len(b.strings(t, `SELECT 'waits' FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND application_name = current_setting('application_name')`)) == 1
	}, time.Minute, 5*time.Millisecond)
	require.NoError(t, tx.Commit(t.Context()))

	got := <-done
	require.NoError(t, got.err)
	require.Zero(t, got.n)
	require.Equal(t, []string{"order pay"}, b.callsLeft(t))
}

// However many calls there are, a batch of the purge looks only at those of its
// messages.
func TestPurge_CallsPlan(t *testing.T) {
	t.Parallel()

	b := setupPurge(t)
	b.exec(t, `INSERT INTO processed_messages (consumer_id, message_id, outcome)
		SELECT 1, lpad(to_hex(n), 32, '0')::uuid, 1 FROM generate_series(1, 100000) AS n`)
	b.exec(t, `INSERT INTO calls (consumer_id, message_id, step, idempotency_key, state)
		SELECT 1, lpad(to_hex(n), 32, '0')::uuid, 'pay', 'key', CASE WHEN n % 1000 = 0 THEN 4 ELSE 2 END FROM generate_series(1, 100000) AS n`)
	b.exec(t, `ANALYZE processed_messages, calls`)
	purges := map[string]func(db dedup.DB) error{
		"messages": func(db dedup.DB) error {
			_, err := b.store.Purge(t.Context(), db, month, dedup.PurgeConfig{})
			return err
		},
		"calls": func(db dedup.DB) error {
			_, err := b.store.PurgeCalls(t.Context(), db, month, dedup.PurgeConfig{})
			return err
		},
	}
	for name, purge := range purges {
		for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
			t.Run(name+"/"+mode, func(t *testing.T) {
				recording := &recordingDB{Pool: b.Pool}
				require.NoError(t, purge(recording))
				conn, err := b.Pool.Acquire(t.Context())
				require.NoError(t, err)
				defer conn.Release()
				_, err = conn.Exec(t.Context(), `SET plan_cache_mode = `+mode)
				require.NoError(t, err)

				plan := explain(t, conn, &pgx.QueuedQuery{SQL: recording.sent, Arguments: []any{"(128,0)", "(256,0)", "2026-01-01", 10_000, pgtype.Text{}}})

				require.NotContains(t, plan, "Seq Scan on "+b.Schema+".calls")
				require.NotContains(t, plan, "Seq Scan on "+b.Schema+".processed_messages")
			})
		}
	}
}

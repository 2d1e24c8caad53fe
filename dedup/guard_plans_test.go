package dedup_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/dedup"
	"github.com/semel-go/semel/handler"
)

// No guarded message reads more than its entity's row, nor does the look for gaps
// read entities that have none.
func TestGuardPlans_AtManyRows(t *testing.T) {
	t.Parallel()

	b := setupGuard(t)
	for _, statement := range []string{
		`INSERT INTO key_versions (consumer_id, key_id, key, message_id, version, known_from, gaps)
		SELECT n % 2, lpad(to_hex(n), 32, '0')::uuid, 'k', gen_random_uuid(), n, 0, (n % 10000 = 0)::int FROM generate_series(1, 200000) AS n`,
		`ANALYZE key_versions`,
	} {
		_, err := b.Pool.Exec(t.Context(), statement)
		require.NoError(t, err)
	}
	sent := &recordingQueries{sent: map[string]*pgx.QueuedQuery{}, next: "guard"}
	msg := order("1", 1)
	ctx := handler.WithCause(t.Context(), &handler.Cause{Consumer: "shipping", Message: msg})
	require.NoError(t, b.store.VersionGuard(dedup.GuardConfig{CountGaps: true})(func(context.Context, pgx.Tx, *handler.Message) error { return nil })(ctx, sent, msg))
	sent.next = "version"
	_, err := b.store.Version(t.Context(), sent, "shipping", "", []byte("1"))
	require.ErrorIs(t, err, errRecorded)
	sent.next = "gaps"
	_, err = b.store.Gaps(t.Context(), sent, "shipping", 10)
	require.ErrorIs(t, err, errRecorded)

	for name, want := range map[string]string{"guard": "key_versions_pkey", "fill": "key_versions_pkey", "version": "key_versions_pkey", "gaps": "key_versions_consumer_id_idx"} {
		for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
			t.Run(name+"/"+mode, func(t *testing.T) {
				conn, err := b.Pool.Acquire(t.Context())
				require.NoError(t, err)
				defer conn.Release()
				_, err = conn.Exec(t.Context(), `SET plan_cache_mode = `+mode)
				require.NoError(t, err)

				plan := explain(t, conn, sent.sent[name])

				require.NotContains(t, plan, "Seq Scan")
				require.Contains(t, plan, want)
			})
		}
	}
}

// recordingQueries keeps the statements that it is given, and answers that the
// entity is further.
type recordingQueries struct {
	pgx.Tx
	sent map[string]*pgx.QueuedQuery
	next string
}

var errRecorded = context.Canceled

func (r *recordingQueries) QueryRow(_ context.Context, sql string, args ...any) pgx.Row {
	r.sent[r.next] = &pgx.QueuedQuery{SQL: sql, Arguments: args}
	r.next = "fill"
	return noRow{}
}

func (r *recordingQueries) Query(_ context.Context, sql string, args ...any) (pgx.Rows, error) {
	r.sent[r.next] = &pgx.QueuedQuery{SQL: sql, Arguments: args}
	return nil, errRecorded
}

func (r *recordingQueries) Exec(_ context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	r.sent[r.next] = &pgx.QueuedQuery{SQL: sql, Arguments: args}
	return pgconn.CommandTag{}, nil
}

type noRow struct{}

func (noRow) Scan(...any) error { return pgx.ErrNoRows }

package dlq_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/dlq"
)

// What people and monitoring systems ask all day, and what purges in the
// background, does not read all letters that were ever closed.
func TestPlans_AtManyRows(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.exec(t, `INSERT INTO semel.dead_letters (consumer_id, message_id, reason, state, owner, resolved_at)
		SELECT n % 2, gen_random_uuid(), 'permanent', CASE WHEN n % 1000 = 0 THEN 'open' ELSE 'resolved' END, CASE WHEN n % 2000 = 0 THEN 'ann' END,
			CASE WHEN n % 1000 <> 0 THEN clock_timestamp() - make_interval(secs => n) END
		FROM generate_series(1, 200000) AS n`)
	b.exec(t, `ANALYZE semel.dead_letters`)
	scan := "Seq Scan on " + b.schema + ".dead_letters"

	forced := []string{"force_custom_plan", "force_generic_plan"}
	asUsual := []string{"auto"} // one text for all filters: the server sees that a plan for the arguments is better

	tests := []struct {
		name  string
		modes []string
		send  func(q *recorder) error
		want  string
	}{
		{name: "Unowned", modes: asUsual, want: "dead_letters_id_idx", send: func(q *recorder) error {
			n, err := b.store.Count(t.Context(), q, dlq.Filter{State: dlq.Open, Unowned: true})
			require.EqualValues(t, 100, n)
			return err
		}},
		{name: "OpenOfAnOwner", modes: asUsual, want: "dead_letters_id_idx", send: func(q *recorder) error {
			letters, err := b.store.List(t.Context(), q, dlq.Filter{State: dlq.Open, Owner: "ann"})
			require.Len(t, letters, 100)
			return err
		}},
		{name: "Assign", modes: forced, want: "dead_letters_pkey", send: func(q *recorder) error {
			_, err := b.store.Assign(t.Context(), q, "ann", 1000)
			return err
		}},
		{name: "NothingToPurge", modes: forced, want: "dead_letters_resolved_at_idx", send: func(q *recorder) error {
			_, err := b.store.Purge(t.Context(), q, dlq.PurgeConfig{MaxAge: 90 * day, RedactAfter: 30 * day})
			require.Len(t, q.sent, 1, "nothing is that old, and it reads the table all the same")
			return err
		}},
	}
	for _, tt := range tests {
		for _, mode := range tt.modes {
			t.Run(tt.name+"/"+mode, func(t *testing.T) {
				q := &recorder{Pool: b.pool}
				require.NoError(t, tt.send(q))

				plan := q.explain(t, mode)

				require.NotContains(t, plan, scan)
				require.Contains(t, plan, tt.want)
			})
		}
	}

	// A purge reads the blocks of its batch and no others.
	for _, mode := range forced {
		t.Run("Purge/"+mode, func(t *testing.T) {
			q := &recorder{Pool: b.pool}
			_, err := b.store.Purge(t.Context(), q, dlq.PurgeConfig{MaxAge: 55 * time.Hour, RedactAfter: 54 * time.Hour, Batch: 1000}) // 200,000 s are 56 hours
			require.NoError(t, err)
			require.Greater(t, len(q.sent), 2)

			plan := q.explain(t, mode)

			require.NotContains(t, plan, scan)
			require.Contains(t, plan, "Tid Range Scan on "+b.schema+".dead_letters")
			require.Equal(t, 3, strings.Count(plan, "Tid Scan on "+b.schema+".dead_letters"), "deletes, redacts and dates by place")
		})
	}

	t.Run("IsToldFromAScan", func(t *testing.T) {
		q := &recorder{Pool: b.pool}
		_, err := b.store.Count(t.Context(), q, dlq.Filter{Type: "paid"})
		require.NoError(t, err)
		require.Contains(t, q.explain(t, "force_custom_plan"), scan)
	})
}

// recorder keeps the queries that it is given.
type recorder struct {
	*pgxpool.Pool
	sent []pgx.QueuedQuery
}

// Query is that of the pool.
func (r *recorder) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	r.sent = append(r.sent, pgx.QueuedQuery{SQL: sql, Arguments: args})
	return r.Pool.Query(ctx, sql, args...)
}

// explain returns the plan of the last query, planned for its arguments or once
// for all.
func (r *recorder) explain(t *testing.T, mode string) string {
	t.Helper()
	conn, err := r.Acquire(t.Context())
	require.NoError(t, err)
	defer conn.Release()
	last := r.sent[len(r.sent)-1]
	prepared, err := conn.Conn().Prepare(t.Context(), "explained", last.SQL)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Conn().Deallocate(t.Context(), "explained")) }()
	_, err = conn.Exec(t.Context(), `SET plan_cache_mode = `+mode)
	require.NoError(t, err)
	defer func() {
		_, err := conn.Exec(t.Context(), `RESET plan_cache_mode`)
		require.NoError(t, err)
	}()

	texts := make([]string, len(last.Arguments))
	for i, arg := range last.Arguments { // EXECUTE takes no parameters
		encoded, err := conn.Conn().TypeMap().Encode(prepared.ParamOIDs[i], pgtype.TextFormatCode, arg, []byte{})
		require.NoError(t, err)
		if texts[i] = "NULL"; encoded != nil {
			texts[i] = "'" + string(encoded) + "'"
		}
	}
	var lines []string
	for range 10 { // after five the server thinks about a plan once for all
		rows, err := conn.Query(t.Context(), `EXPLAIN (VERBOSE) EXECUTE explained(`+strings.Join(texts, ", ")+`)`, pgx.QueryExecModeSimpleProtocol)
		require.NoError(t, err)
		lines, err = pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err)
	}
	return strings.Join(lines, "\n")
}

package inbox

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/internal/pgtest"
)

// Workers run these statements all the time, and every message of a key that has
// to wait: none may read what waits, whether it is planned for its arguments or
// once for all. SEMEL_TEST_WAITING says how many there are (make soak: a million).
func TestPlans_BesideWaitingRows(t *testing.T) {
	t.Parallel()

	waiting := 200_000
	if n, err := strconv.Atoi(os.Getenv("SEMEL_TEST_WAITING")); err == nil {
		waiting = n
	}
	db := pgtest.New(t)
	for _, statement := range []string{
		// Of two consumers; keys of a hundred and no keys; behind, delayed, and a few ready.
		`INSERT INTO inbox_messages (consumer_id, message_id, key_hash, place, ready_at, payload)
		SELECT n % 2, lpad(to_hex(n), 32, '0')::uuid, CASE WHEN n % 10 < 5 THEN n / 100 END, n,
			CASE WHEN n % 10 >= 5 OR n % 100 = 0 THEN clock_timestamp() + make_interval(secs => n - 100) END, '\x00'
		FROM generate_series(1, ` + strconv.Itoa(waiting) + `) AS n`,
		`ANALYZE inbox_messages`,
	} {
		_, err := db.Pool.Exec(t.Context(), statement)
		require.NoError(t, err)
	}

	q := newTables(db.Schema).rows
	const (
		byTime, byKey, byID = "inbox_messages_consumer_id_ready_at_idx", "inbox_messages_consumer_id_key_hash_seq_idx", "inbox_messages_pkey"

		id, owner = `'00000000-0000-0000-0000-000000000064'`, `'00000000-0000-7000-8000-000000000001'`
	)
	tests := []struct {
		name, sql, args string
		indexes         []string
	}{
		{"Take", q.take, `0, ` + owner + `, '1 min', 100, 1000000`, []string{byTime, byID}},
		{"NextDue", q.nextDue, `0`, []string{byTime}},
		{"Behind", q.behind, `0, 1, 9223372036854775807`, []string{byKey}},
		{"GoOn", q.goOn, `0, 1`, []string{byKey, byID}},
		{"PutBehind", q.putBehind, `0, ` + id + `, ` + owner, []string{byKey, byID}},
		{"ResumeStuck", q.resumeStuck, `0`, []string{byKey}},
		{"ResumeBehind", q.resumeBehind, `0, 5000`, []string{byKey, byID}},
		{"Remove", q.remove, `0, ` + id + `, NULL`, []string{byID}},
		{"RemovePlace", q.removePlace, `0, ` + id + `, 1, 0`, []string{byID}},
		{"Retry", q.retry, `0, ` + id + `, ` + owner + `, '1 s', 1, '1 s', '{}'`, []string{byID}},
		{"Release", q.release, `0, ARRAY[` + id + `]::uuid[], ` + owner, []string{byID}},
		{"Renew", q.renew, `0, ARRAY[` + id + `]::uuid[], ` + owner + `, '1 min'`, []string{byID}},
	}
	for _, tt := range tests {
		for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
			t.Run(tt.name+"/"+mode, func(t *testing.T) {
				plan := explain(t, db, mode, tt.sql, tt.args)

				require.NotContains(t, plan, "Seq Scan on inbox_messages", plan)
				require.NotContains(t, plan, "Sort Key: i.", plan)
				for _, index := range tt.indexes {
					require.Contains(t, plan, index, plan)
				}
			})
		}
	}

	t.Run("IsToldFromAScan", func(t *testing.T) {
		plan := explain(t, db, "force_custom_plan", `SELECT seq FROM inbox_messages WHERE attempts = $1::int ORDER BY seq`, `1`)
		require.Contains(t, plan, "Seq Scan on inbox_messages")
		require.Contains(t, plan, "Sort Key")
	})
}

// explain returns the plan of a prepared statement for its arguments.
func explain(t *testing.T, db *pgtest.DB, mode, sql, args string) string {
	t.Helper()
	conn, err := db.Pool.Acquire(t.Context())
	require.NoError(t, err)
	defer conn.Release()
	_, err = conn.Exec(t.Context(), `SET plan_cache_mode = `+mode)
	require.NoError(t, err)
	_, err = conn.Conn().Prepare(t.Context(), "explained", sql)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Conn().Deallocate(t.Context(), "explained")) }()
	rows, err := conn.Query(t.Context(), `EXPLAIN EXECUTE explained(`+args+`)`, pgx.QueryExecModeSimpleProtocol)
	require.NoError(t, err)
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return strings.Join(lines, "\n")
}

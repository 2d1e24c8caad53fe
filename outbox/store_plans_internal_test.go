package outbox

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/internal/pgtest"
)

// People look while much is published: that must not be read for it. A purge
// reads the blocks of its batch and no others.
func TestPlans_OfTheStore(t *testing.T) {
	t.Parallel()

	db := pgtest.New(t)
	for _, statement := range []string{
		`INSERT INTO outbox (id, aggregatetype, aggregateid, type, published_at)
		SELECT lpad(to_hex(n), 32, '0')::uuid, 'order', n % 10000, 'OrderPaid', clock_timestamp() FROM generate_series(1, 200000) AS n`,
		`INSERT INTO outbox (id, aggregatetype, aggregateid, type)
		SELECT ('ffffffff' || lpad(to_hex(n), 24, '0'))::uuid, 'order', n % 10000, 'OrderPaid' FROM generate_series(1, 2000) AS n`,
		`UPDATE outbox SET quarantined_at = clock_timestamp() WHERE id >= 'ffffffff-0000-0000-0000-000000000700'`,
		`VACUUM ANALYZE outbox`,
	} {
		_, err := db.Pool.Exec(t.Context(), statement)
		require.NoError(t, err)
	}

	q := newStoreQueries(db.Schema)
	const id = `'ffffffff-0000-0000-0000-000000000001'`
	tests := []struct{ name, sql, args, want string }{
		{"Kinds", q.kinds, `1000000`, "outbox_ready_idx"},
		{"KindsHeld", q.kinds, `1000000`, "outbox_blocked_idx"},
		{"ListPending", q.listPending, `'', '', '0 s', 100`, "outbox_ready_idx"},
		{"ListHeld", q.listHeld, `'', '', '0 s', 100, true`, "outbox_blocked_idx"},
		{"LoadRecord", q.loadRecord, id, "outbox_pkey"},
		{"Retry", q.retry, id, "Index Scan using outbox_"}, // by id, or among the few that are held
		{"Discard", q.discard, id, "outbox_pkey"},
		{"Purge", q.purge, `'(128,0)', '(256,0)', '2026-01-01', 10000`, "Tid Range Scan on outbox"},
		{"ArchiveFind", q.archiveFind, `'(128,0)', '(256,0)', '2026-01-01', 10000`, "Tid Range Scan on outbox"},
		{"ArchiveLoad", q.archiveLoad, `ARRAY[` + id + `::uuid], 'infinity'`, "outbox_pkey"},
		{"ArchiveDelete", q.archiveDelete, `ARRAY[` + id + `::uuid], '{(0,1)}', '{1}'`, "Tid Scan on outbox"},
	}
	for _, tt := range tests {
		for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
			t.Run(tt.name+"/"+mode, func(t *testing.T) {
				plan := planOf(t, db, mode, tt.sql, tt.args)

				require.NotContains(t, plan, "Seq Scan on outbox", plan)
				require.Contains(t, plan, tt.want, plan)
			})
		}
	}
	t.Run("List", func(t *testing.T) { // with its arguments: a limit unknown could be all
		plan := planOf(t, db, "force_custom_plan", q.list, `'', '', '0 s', 100, 'published'`)
		require.Contains(t, plan, "Index Scan Backward using outbox_pkey", plan)
	})
}

// planOf is the plan of a prepared statement.
func planOf(t *testing.T, db *pgtest.DB, mode, sql, args string) string {
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

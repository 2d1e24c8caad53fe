package outbox

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/internal/pgtest"
)

// A relay runs these statements for every batch, or every half second: none may
// read the rows that are done with, whether it is planned for its arguments or
// once for all. SEMEL_TEST_PUBLISHED says how many there are (make soak: 5
// million).
func TestPlans_BesidePublishedRows(t *testing.T) {
	t.Parallel()

	published := 500_000
	if n, err := strconv.Atoi(os.Getenv("SEMEL_TEST_PUBLISHED")); err == nil {
		published = n
	}
	db := pgtest.New(t)
	for _, statement := range []string{
		`INSERT INTO outbox (id, aggregatetype, aggregateid, type, published_at)
		SELECT lpad(to_hex(n), 32, '0')::uuid, 'order', n % 10000, 'OrderPaid', clock_timestamp() FROM generate_series(1, ` + strconv.Itoa(published) + `) AS n`,
		`INSERT INTO outbox (id, aggregatetype, aggregateid, type)
		SELECT ('ffffffff' || lpad(to_hex(n), 24, '0'))::uuid, 'order', n % 10000, 'OrderPaid' FROM generate_series(1, 2000) AS n`,
		`INSERT INTO outbox (id, aggregatetype, aggregateid, type, next_attempt_at)
		SELECT ('eeeeeeee' || lpad(to_hex(n), 24, '0'))::uuid, 'order', n % 10000, 'OrderPaid', clock_timestamp() FROM generate_series(1, 100) AS n`,
		`UPDATE relay_leases SET owner = '00000000-0000-7000-8000-000000000001', epoch = 1`,
		`ANALYZE outbox`,
		`ANALYZE relay_leases`,
	} {
		_, err := db.Pool.Exec(t.Context(), statement)
		require.NoError(t, err)
	}

	q := newRelayQueries(db.Schema)
	const owner, ids = `'00000000-0000-7000-8000-000000000001'`, `'{ffffffff-0000-0000-0000-000000000001}'`
	tests := []struct{ name, sql, args, index string }{
		{"Read", q.read, `5, 64, 127, 100, 1000000000`, "outbox_ready_idx"},
		{"ReadAll", q.read, `0, 0, 255, 100, 1000000000`, "outbox_ready_idx"},
		{"Scan", q.scan, `0, 0, 255, 1000, 1000000000`, "outbox_ready_idx"},
		{"Load", q.load, ids, "outbox_pkey"},
		{"Blocked", q.blocked, `0, 255, 1001, true, -1, 0`, "outbox_blocked_idx"},
		{"Mark", q.mark, ids + `, '{0}', '{1}', ` + owner, "outbox_pkey"},
		{"Remove", q.remove, ids + `, '{0}', '{1}', ` + owner, "outbox_pkey"},
		{"Free", q.free, ids, "outbox_pkey"},
		{"Unnoted", q.unnoted, ids, "outbox_pkey"},
		{"Fail", q.fail, `'ffffffff-0000-0000-0000-000000000001', ` + owner + `, 1, 'no', false, '1 s', '1 h'`, "outbox_pkey"},
	}
	for _, tt := range tests {
		for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
			t.Run(tt.name+"/"+mode, func(t *testing.T) {
				conn, err := db.Pool.Acquire(t.Context())
				require.NoError(t, err)
				defer conn.Release()
				_, err = conn.Exec(t.Context(), `SET plan_cache_mode = `+mode)
				require.NoError(t, err)
				_, err = conn.Conn().Prepare(t.Context(), "explained", tt.sql)
				require.NoError(t, err)
				defer func() { require.NoError(t, conn.Conn().Deallocate(t.Context(), "explained")) }()
				rows, err := conn.Query(t.Context(), `EXPLAIN EXECUTE explained(`+tt.args+`)`, pgx.QueryExecModeSimpleProtocol)
				require.NoError(t, err)
				lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
				require.NoError(t, err)
				plan := strings.Join(lines, "\n")

				require.NotContains(t, plan, "Seq Scan on outbox", plan)
				require.Contains(t, plan, tt.index, plan)
				require.NotContains(t, plan, "Sort Key: o.seq\n", "the backlog is not sorted")
			})
		}
	}
}

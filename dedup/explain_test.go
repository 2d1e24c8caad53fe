package dedup_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/dedup"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/internal/pgtest"
)

// Every message runs these statements: none may read the whole table, whether
// it is planned for its arguments or once for all.
func TestPlans_AtAMillionRows(t *testing.T) {
	t.Parallel()

	db := pgtest.New(t)
	for _, statement := range []string{
		`INSERT INTO processed_messages (consumer_id, message_id, fingerprint, outcome)
		SELECT n % 2, lpad(to_hex(n), 32, '0')::uuid, n, 1 FROM generate_series(1, 1000000) AS n`,
		`ANALYZE processed_messages`,
	} {
		_, err := db.Pool.Exec(t.Context(), statement)
		require.NoError(t, err)
	}

	for name, q := range hotStatements(t, dedup.NewStore(db.Schema)) {
		for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
			t.Run(name+"/"+mode, func(t *testing.T) {
				conn, err := db.Pool.Acquire(t.Context())
				require.NoError(t, err)
				defer conn.Release()
				_, err = conn.Exec(t.Context(), `SET plan_cache_mode = `+mode)
				require.NoError(t, err)

				plan := explain(t, conn, q)

				require.NotContains(t, plan, "Seq Scan")
				require.Contains(t, plan, "processed_messages_pkey")
			})
		}
	}

	// A purge reads the blocks of its batch and no others.
	for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
		t.Run("purge/"+mode, func(t *testing.T) {
			conn, err := db.Pool.Acquire(t.Context())
			require.NoError(t, err)
			defer conn.Release()
			_, err = conn.Exec(t.Context(), `SET plan_cache_mode = `+mode)
			require.NoError(t, err)
			recording := &recordingDB{Pool: db.Pool}
			_, err = dedup.NewStore(db.Schema).Purge(t.Context(), recording, dedup.MinRetention, dedup.PurgeConfig{Batch: 1})
			require.NoError(t, err)

			plan := explain(t, conn, &pgx.QueuedQuery{SQL: recording.sent, Arguments: []any{"(128,0)", "(256,0)", "2026-01-01", 10_000, pgtype.Text{}}})

			require.NotContains(t, plan, "Seq Scan on "+db.Schema+".processed_messages")
			require.Contains(t, plan, "Tid Range Scan on "+db.Schema+".processed_messages")
			require.Contains(t, plan, "Tid Scan on "+db.Schema+".processed_messages")
		})
	}

	t.Run("IsToldFromAScan", func(t *testing.T) {
		conn, err := db.Pool.Acquire(t.Context())
		require.NoError(t, err)
		defer conn.Release()
		byText := &pgx.QueuedQuery{SQL: `SELECT outcome FROM processed_messages WHERE message_text = $1`, Arguments: []any{"evt_1"}}
		require.Contains(t, explain(t, conn, byText), "Seq Scan")
	})
}

// hotStatements are the store's statements as it sends them.
func hotStatements(t *testing.T, store dedup.Store) map[string]*pgx.QueuedQuery {
	t.Helper()
	limits := dedup.NewLimits(time.Second, time.Second)
	entry := []dedup.Entry{{MessageID: dedup.MessageID("evt_1"), Fingerprint: pgtype.Int8{Int64: 1, Valid: true}, Outcome: handler.Processed}}
	var seen dedup.Seen
	b := &pgx.Batch{}
	store.QueueClaim(b, entry, false, limits)
	store.QueueClaim(b, entry, true, limits)
	store.QueueSeen(b, 1, entry[0].MessageID, &seen)
	primitive := &recordingTx{}
	_, err := store.Claim(t.Context(), primitive, "shipping", "evt_1")
	require.NoError(t, err)
	return map[string]*pgx.QueuedQuery{
		"claim_timed": b.QueuedQueries[0], "reclaim_timed": b.QueuedQueries[1], "seen": b.QueuedQueries[2], "claim": primitive.sent,
	}
}

// explain returns the plan of a prepared statement for its arguments.
func explain(t *testing.T, conn *pgxpool.Conn, q *pgx.QueuedQuery) string {
	t.Helper()
	const name = "explained"
	_, err := conn.Conn().Prepare(t.Context(), name, q.SQL)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Conn().Deallocate(t.Context(), name)) }()
	rows, err := conn.Query(t.Context(), `EXPLAIN (VERBOSE) EXECUTE `+name+`(`+literals(q.Arguments)+`)`, pgx.QueryExecModeSimpleProtocol)
	require.NoError(t, err)
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return strings.Join(lines, "\n")
}

// literals are harmless arguments as SQL text: EXECUTE takes no parameters.
func literals(args []any) string {
	texts := make([]string, len(args))
	for i, arg := range args {
		switch arg := arg.(type) {
		case pgtype.Int8:
			texts[i] = fmt.Sprint(arg.Int64)
		case pgtype.Text:
			texts[i] = "NULL"
		default:
			texts[i] = fmt.Sprintf("'%v'", arg)
		}
	}
	return strings.Join(texts, ", ")
}

// recordingTx keeps the statement that it is given.
type recordingTx struct {
	pgx.Tx
	sent *pgx.QueuedQuery
}

// Exec implements [pgx.Tx].
func (tx *recordingTx) Exec(_ context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	tx.sent = &pgx.QueuedQuery{SQL: sql, Arguments: args}
	return pgconn.NewCommandTag("INSERT 0 1"), nil
}

// recordingDB keeps the last query that it is given.
type recordingDB struct {
	*pgxpool.Pool
	sent string
}

// QueryRow implements [dedup.DB].
func (db *recordingDB) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	db.sent = sql
	return db.Pool.QueryRow(ctx, sql, args...)
}

package calls_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/dedup"
	"github.com/semel-go/semel/dedup/calls"
)

// recorder keeps the statements of a pool with their arguments, one of each.
type recorder struct {
	mu   sync.Mutex
	sent map[string][]any
}

func (r *recorder) TraceQueryStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceQueryStartData) context.Context {
	r.mu.Lock()
	defer r.mu.Unlock()
	if strings.Contains(d.SQL, "calls AS c") {
		r.sent[d.SQL] = d.Args
	}
	return ctx
}
func (*recorder) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// However many calls there are, none of these statements reads the table, whether it
// is planned for its arguments or once for all.
func TestPlans(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.exec(t, `INSERT INTO calls (consumer_id, message_id, step, idempotency_key, state)
		SELECT n % 2, lpad(to_hex(n), 32, '0')::uuid, 'pay', 'key', CASE WHEN n % 10000 = 0 THEN 4 ELSE 2 END FROM generate_series(1, 1000000) AS n`)
	b.exec(t, `INSERT INTO processed_messages (consumer_id, message_id, outcome)
		SELECT n % 2, lpad(to_hex(n), 32, '0')::uuid, 1 FROM generate_series(1, 100000) AS n`)
	b.exec(t, `ANALYZE calls, processed_messages`)
	r := &recorder{sent: map[string][]any{}}
	config, err := pgxpool.ParseConfig(b.URL)
	require.NoError(t, err)
	config.ConnConfig.Tracer = r
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	defer pool.Close()
	b.ledger, err = calls.New(pool, calls.Config{Schema: b.Schema})
	require.NoError(t, err)

	b.lost(t, calls.Options{})        // take, give back
	_, err = b.do(t, calls.Options{}) // intend, finish
	require.NoError(t, err)
	require.NoError(t, pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error { // result
		_, err := b.ledger.Result(b.context(t.Context()), tx, b.msg, step)
		return err
	}))
	_, err = b.store().Load(t.Context(), pool, b.ref())
	require.NoError(t, err)
	_, err = b.store().Resolve(t.Context(), pool, calls.Resolution{Decision: calls.Retry}, b.ref())
	require.NoError(t, err)
	_, err = b.store().CountUnknown(t.Context(), pool)
	require.NoError(t, err)
	require.Len(t, r.sent, 8)

	for sql, args := range r.sent {
		for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
			plan := b.explain(t, mode, sql, args)
			require.NotContains(t, plan, "Seq Scan on "+b.Schema+".calls", sql)
			require.NotContains(t, plan, "Seq Scan on "+b.Schema+".processed_messages", sql)
			require.Regexp(t, `calls_pkey|calls_open_idx`, plan, sql)
		}
	}

	// What waits for a person is found among all calls.
	clear(r.sent)
	for _, f := range []calls.Filter{{Open: true}, {State: calls.Unknown}, {Consumer: consumer, Message: "evt_1"}} {
		_, err = b.store().List(t.Context(), pool, f)
		require.NoError(t, err)
		for sql, args := range r.sent {
			require.NotContains(t, b.explain(t, "force_custom_plan", sql, args), "Seq Scan on "+b.Schema+".calls", f)
		}
	}
}

// explain returns the plan of a prepared statement for its arguments.
func (b *testBundle) explain(t *testing.T, mode, sql string, args []any) string {
	t.Helper()
	conn, err := b.Pool.Acquire(t.Context())
	require.NoError(t, err)
	defer conn.Release()
	_, err = conn.Exec(t.Context(), `SET plan_cache_mode = `+mode)
	require.NoError(t, err)
	const name = "explained"
	_, err = conn.Conn().Prepare(t.Context(), name, sql)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Conn().Deallocate(t.Context(), name)) }()

	places, texts := make([]string, len(args)), []any{pgx.QueryExecModeSimpleProtocol} // EXECUTE takes no parameters
	for i, arg := range args {
		places[i] = fmt.Sprintf("$%d", i+1)
		switch arg := arg.(type) {
		case dedup.ID:
			texts = append(texts, arg.String())
		case []dedup.ID:
			var ids []string
			for _, id := range arg {
				ids = append(ids, id.String())
			}
			texts = append(texts, ids)
		default:
			texts = append(texts, arg)
		}
	}
	execute := `EXPLAIN (VERBOSE) EXECUTE ` + name
	if len(args) > 0 {
		execute += `(` + strings.Join(places, ", ") + `)`
	}
	rows, err := conn.Query(t.Context(), execute, texts...)
	require.NoError(t, err)
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return strings.Join(lines, "\n")
}

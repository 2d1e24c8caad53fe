package inbox_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/dedup"
	"github.com/semel-go/semel/inbox"
)

// What people and monitoring systems ask all day does not read all messages that
// wait: counting them reads indexes, and what people look for is found.
func TestPlans_OfTheOperator(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.exec(t, `INSERT INTO consumers (id, name) VALUES ($1, 'shipping'), ($2, 'billing')`, dedup.ConsumerID("shipping"), dedup.ConsumerID("billing"))
	b.exec(t, `INSERT INTO inbox_messages (consumer_id, message_id, message_text, key_hash, key, ready_at, lease_owner)
		SELECT CASE WHEN n % 10 = 0 THEN $2::int ELSE $1 END, message_id('m' || n), 'm' || n, n % 20000, 'k',
			CASE WHEN n % 50 = 0 THEN NULL ELSE clock_timestamp() + make_interval(mins => n - 100) END,
			CASE WHEN n BETWEEN 101 AND 110 THEN gen_random_uuid() END
		FROM generate_series(1, 200000) AS n`, dedup.ConsumerID("shipping"), dedup.ConsumerID("billing"))
	b.exec(t, `INSERT INTO inbox_messages (consumer_id, message_id, key_hash, parked_at, dead_letter_id)
		SELECT $1, gen_random_uuid(), n, clock_timestamp(), n FROM generate_series(1, 30) AS n`, dedup.ConsumerID("shipping"))
	b.exec(t, `VACUUM ANALYZE inbox_messages`)
	store := inbox.NewStore(b.Schema)
	const scan = "Seq Scan on inbox_messages"

	tests := []struct {
		name    string
		byIndex bool
		send    func(q *asker) error
		want    string
	}{
		{name: "Parked", want: "inbox_messages_dead_letter_id_idx", send: func(q *asker) error {
			records, err := store.List(t.Context(), q, inbox.Filter{State: inbox.StateParked})
			require.Len(t, records, 30)
			return err
		}},
		{name: "Ready", want: "inbox_messages_consumer_id_ready_at_idx", send: func(q *asker) error {
			_, err := store.List(t.Context(), q, inbox.Filter{State: inbox.StateReady, Consumer: "shipping"})
			return err
		}},
		{name: "Key", want: "inbox_messages_consumer_id_key_hash_seq_idx", send: func(q *asker) error {
			_, err := store.List(t.Context(), q, inbox.Filter{Key: []byte("k"), Consumer: "shipping"})
			return err
		}},
		{name: "RunNow", want: "inbox_messages_pkey", send: func(q *asker) error {
			results, err := store.RunNow(t.Context(), q, "shipping", "m199999")
			require.True(t, results[0].Changed)
			return err
		}},
		{name: "Load", want: "inbox_messages_consumer_id_key_hash_seq_idx", send: func(q *asker) error { // the last one counts what is before it
			_, err := store.Load(t.Context(), q, "shipping", "m199998")
			return err
		}},
		{name: "Status", byIndex: true, want: "Index Only Scan using inbox_messages_consumer_id_ready_at_idx", send: func(q *asker) error {
			began := time.Now()
			st, err := store.Status(t.Context(), q)
			require.NoError(t, err)
			require.Len(t, st.Consumers, 2)
			billing, shipping := st.Consumers[0], st.Consumers[1]
			require.EqualValues(t, 20_000, billing.Total())
			require.EqualValues(t, 180_030, shipping.Total())
			require.EqualValues(t, []int64{9, 30}, []int64{shipping.Taken, shipping.Parked})
			t.Logf("a status of so many messages took %s", time.Since(began))
			return err
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			q := &asker{Pool: b.Pool}
			require.NoError(t, tt.send(q))

			var plans strings.Builder
			for _, one := range q.sent {
				plans.WriteString(q.explain(t, one, tt.byIndex))
			}

			require.NotContains(t, plans.String(), scan)
			require.Contains(t, plans.String(), tt.want)
		})
	}

	t.Run("IsToldFromAScan", func(t *testing.T) {
		q := &asker{Pool: b.Pool}
		_, err := store.List(t.Context(), q, inbox.Filter{Type: "order.paid"})
		require.NoError(t, err)
		require.Contains(t, q.explain(t, q.sent[0], false), scan)
	})
}

// asker keeps the queries that it is given.
type asker struct {
	*pgxpool.Pool
	sent []pgx.QueuedQuery
}

// Query is that of the pool.
func (a *asker) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	a.sent = append(a.sent, pgx.QueuedQuery{SQL: sql, Arguments: args})
	return a.Pool.Query(ctx, sql, args...)
}

// explain returns the plan of a query for its arguments. With byIndex it is the one
// that reads indexes, if there is one: how much a VACUUM could do while other tests
// ran decides whether the planner takes it.
func (a *asker) explain(t *testing.T, q pgx.QueuedQuery, byIndex bool) string {
	t.Helper()
	conn, err := a.Acquire(t.Context())
	require.NoError(t, err)
	defer conn.Release()
	settings := `SET plan_cache_mode = force_custom_plan`
	if byIndex {
		settings += `; SET enable_seqscan = off; SET enable_bitmapscan = off`
	}
	_, err = conn.Exec(t.Context(), settings)
	require.NoError(t, err)
	defer func() {
		_, err := conn.Exec(t.Context(), `RESET ALL`)
		require.NoError(t, err)
	}()
	prepared, err := conn.Conn().Prepare(t.Context(), "explained", q.SQL)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Conn().Deallocate(t.Context(), "explained")) }()

	texts := make([]string, len(q.Arguments))
	for i, arg := range q.Arguments { // EXECUTE takes no parameters
		encoded, err := conn.Conn().TypeMap().Encode(prepared.ParamOIDs[i], pgtype.TextFormatCode, arg, []byte{})
		require.NoError(t, err)
		if texts[i] = "NULL"; encoded != nil {
			texts[i] = "'" + string(encoded) + "'"
		}
	}
	arguments := ""
	if len(texts) > 0 {
		arguments = "(" + strings.Join(texts, ", ") + ")"
	}
	rows, err := conn.Query(t.Context(), `EXPLAIN EXECUTE explained`+arguments, pgx.QueryExecModeSimpleProtocol)
	require.NoError(t, err)
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return strings.Join(lines, "\n")
}

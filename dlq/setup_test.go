package dlq_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/internal/pgtest"
	"github.com/semel-go/semel/schema"
)

// testBundle is a store on a schema of its own.
type testBundle struct {
	pool   *pgxpool.Pool
	schema string
	store  dlq.Store
}

func setup(t *testing.T) *testBundle {
	t.Helper()
	db := pgtest.New(t)
	return &testBundle{pool: db.Pool, schema: db.Schema, store: dlq.NewStore(db.Schema)}
}

// inTx runs f in a transaction and commits it.
func (b *testBundle) inTx(t *testing.T, f func(tx pgx.Tx)) {
	t.Helper()
	require.NoError(t, pgx.BeginFunc(t.Context(), b.pool, func(tx pgx.Tx) error {
		f(tx)
		return nil
	}))
}

// add stores a letter in a transaction of its own.
func (b *testBundle) add(t *testing.T, l *dlq.Letter) (id int64) {
	t.Helper()
	b.inTx(t, func(tx pgx.Tx) {
		var err error
		id, _, err = b.store.Add(t.Context(), tx, l)
		require.NoError(t, err)
	})
	return id
}

func (b *testBundle) load(t *testing.T, id int64) *dlq.Letter {
	t.Helper()
	l, err := b.store.Load(t.Context(), b.pool, id)
	require.NoError(t, err)
	return l
}

func (b *testBundle) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	_, err := b.pool.Exec(t.Context(), schema.Qualify(sql, b.schema), args...)
	require.NoError(t, err)
}

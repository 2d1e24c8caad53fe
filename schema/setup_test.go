package schema_test

import (
	"context"
	"crypto/rand"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/internal/services"
	"github.com/semel-go/semel/schema"
)

// testBundle is a schema name that nothing exists under yet.
type testBundle struct {
	pool *pgxpool.Pool
	name string
}

func setup(t *testing.T) *testBundle {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), services.Postgres(t))
	require.NoError(t, err)
	name := `a "b'c; ` + rand.Text() // it must be quoted wherever it stands
	t.Cleanup(func() {
		_, err := pool.Exec(context.WithoutCancel(t.Context()), "DROP SCHEMA IF EXISTS "+pgx.Identifier{name}.Sanitize()+" CASCADE")
		require.NoError(t, err)
		pool.Close()
	})
	return &testBundle{pool: pool, name: name}
}

func (b *testBundle) up(t *testing.T) {
	t.Helper()
	_, err := schema.Up(t.Context(), b.pool, b.name, 0)
	require.NoError(t, err)
}

func (b *testBundle) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	_, err := b.pool.Exec(t.Context(), schema.Qualify(sql, b.name), args...)
	require.NoError(t, err)
}

// query returns the one value of a query.
func query[T any](t *testing.T, b *testBundle, sql string, args ...any) (value T) {
	t.Helper()
	require.NoError(t, b.pool.QueryRow(t.Context(), schema.Qualify(sql, b.name), args...).Scan(&value))
	return value
}

// asRole returns a pool whose connections act as a role that may do nothing
// but what is granted to it.
func (b *testBundle) asRole(t *testing.T, grants ...string) (pool *pgxpool.Pool, role string) {
	t.Helper()
	role = "semel_test_" + rand.Text()
	quoted := pgx.Identifier{role}.Sanitize()
	b.exec(t, "CREATE ROLE "+quoted)
	for _, grant := range grants {
		b.exec(t, grant+" TO "+quoted)
	}
	config := b.pool.Config()
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "SET ROLE "+quoted)
		return err
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(func() {
		pool.Close()
		ctx := context.WithoutCancel(t.Context())
		_, err := b.pool.Exec(ctx, "DROP OWNED BY "+quoted+" CASCADE")
		require.NoError(t, err)
		_, err = b.pool.Exec(ctx, "DROP ROLE "+quoted)
		require.NoError(t, err)
	})
	return pool, role
}

package main

import (
	"context"
	"crypto/rand"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/examples/internal/database"
	"github.com/semel-go/semel/examples/internal/programtest"
	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/schema"
)

// TestMain lets the test binary be the supervisor of its embedded PostgreSQL.
func TestMain(m *testing.M) {
	if database.Supervise() {
		return
	}
	status := m.Run()
	builds.Remove()
	os.Exit(status)
}

// builds is where the programs are.
var builds programtest.Builds

type testBundle struct {
	approvals

	pool   *pgxpool.Pool
	schema string
	woken  int // how often the relays were
}

// setup makes the service in a schema of its own.
func setup(t *testing.T, url string) *testBundle {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	b := &testBundle{schema: "semel_merchants_test_" + strings.ToLower(rand.Text()[:8])}
	var err error
	b.pool, err = database.NewPool(ctx, url, b.schema, "test", 4)
	require.NoError(t, err)
	t.Cleanup(b.pool.Close)
	_, err = schema.Up(ctx, b.pool, b.schema, 0)
	require.NoError(t, err)
	t.Cleanup(func() {
		_, err := b.pool.Exec(ctx, "DROP SCHEMA "+pgx.Identifier{b.schema}.Sanitize()+" CASCADE")
		require.NoError(t, err)
	})
	b.exec(t, tablesSQL)
	b.approvals = approvals{pool: b.pool, events: outbox.NewWriter(b.schema), wake: func() { b.woken++ }}
	return b
}

// withDatabase opens a database for a test of its own, and schemas in it.
func withDatabase(t *testing.T) (url string) {
	t.Helper()
	server, err := database.Open(context.WithoutCancel(t.Context()), func(text string) { t.Log(text) })
	require.NoError(t, err)
	t.Cleanup(server.Close)
	return server.URL
}

func (b *testBundle) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	_, err := b.pool.Exec(t.Context(), sql, args...)
	require.NoError(t, err)
}

// number is the result of a query for one.
func (b *testBundle) number(t *testing.T, sql string, args ...any) (n int) {
	t.Helper()
	require.NoError(t, b.pool.QueryRow(t.Context(), schema.Qualify(sql, b.schema), args...).Scan(&n))
	return n
}

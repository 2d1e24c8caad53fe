package main

import (
	"context"
	"crypto/rand"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/examples/internal/database"
	"github.com/semel-go/semel/examples/internal/programtest"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
	"github.com/semel-go/semel/schema"
)

// TestMain lets the test binary be the supervisor of its embedded PostgreSQL.
func TestMain(m *testing.M) {
	if database.Supervise() {
		return
	}
	status := m.Run()
	databases.close()
	builds.Remove()
	os.Exit(status)
}

// builds is where the programs are.
var builds programtest.Builds

// databases is the server that all tests but those of whole programs share.
var databases shared

type shared struct {
	mu     sync.Mutex // guards server
	server *database.Server
}

// withDatabase returns a server for schemas of a test's own.
func withDatabase(t *testing.T) (url string) {
	t.Helper()
	databases.mu.Lock()
	defer databases.mu.Unlock()
	if databases.server == nil {
		server, err := database.Open(context.WithoutCancel(t.Context()), func(text string) { t.Log(text) })
		require.NoError(t, err)
		databases.server = server
	}
	return databases.server.URL
}

func (s *shared) close() {
	if s.server != nil {
		s.server.Close()
	}
}

type testBundle struct {
	pool   *pgxpool.Pool
	schema string
}

// setup makes the services' tables in a schema of their own.
func setup(t *testing.T, url string) *testBundle {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	b := &testBundle{schema: "semel_einvoice_test_" + strings.ToLower(rand.Text()[:8])}
	var err error
	b.pool, err = database.NewPool(ctx, url, b.schema, "test", 6)
	require.NoError(t, err)
	t.Cleanup(b.pool.Close)
	_, err = schema.Up(ctx, b.pool, b.schema, 0)
	require.NoError(t, err)
	t.Cleanup(func() {
		_, err := b.pool.Exec(ctx, "DROP SCHEMA "+pgx.Identifier{b.schema}.Sanitize()+" CASCADE")
		require.NoError(t, err)
	})
	b.exec(t, tablesSQL)
	return b
}

func (b *testBundle) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	_, err := b.pool.Exec(t.Context(), schema.Qualify(sql, b.schema), args...)
	require.NoError(t, err)
}

// texts are the rows of a query for one column of text.
func (b *testBundle) texts(t *testing.T, sql string, args ...any) []string {
	t.Helper()
	rows, err := b.pool.Query(t.Context(), schema.Qualify(sql, b.schema), args...)
	require.NoError(t, err)
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return found
}

// consumer returns the inbox of one of the topic's consumers.
func (b *testBundle) consumer(t *testing.T, name string, h handler.Func) *inbox.Inbox {
	t.Helper()
	in, err := inbox.New(b.pool, name, h, inbox.Config{Schema: b.schema, Workers: 1, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	return in
}

func (b *testBundle) config(accounts ...account) partConfig {
	return partConfig{Name: "test", Schema: b.schema, Accounts: accounts}
}

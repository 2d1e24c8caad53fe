package programtest

import (
	"context"
	"crypto/rand"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/examples/internal/database"
	"github.com/semel-go/semel/schema"
)

// Schema is a schema of a test's own, with Semel's tables and those of an example.
type Schema struct {
	Pool *pgxpool.Pool
	Name string
}

// Schema makes one. It is dropped at the end of the test.
func (p *Package) Schema(t *testing.T, tables string) Schema {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	s := Schema{Name: "semel_test_" + strings.ToLower(rand.Text()[:8])}
	var err error
	s.Pool, err = database.NewPool(ctx, p.database(t), s.Name, "test", 6)
	require.NoError(t, err)
	t.Cleanup(s.Pool.Close)
	_, err = schema.Up(ctx, s.Pool, s.Name, 0)
	require.NoError(t, err)
	t.Cleanup(func() {
		_, err := s.Pool.Exec(ctx, "DROP SCHEMA "+pgx.Identifier{s.Name}.Sanitize()+" CASCADE")
		require.NoError(t, err)
	})
	s.Exec(t, tables)
	return s
}

// database returns the URL of the server that the tests of the package share.
func (p *Package) database(t *testing.T) string {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.server == nil {
		server, err := database.Open(context.WithoutCancel(t.Context()), func(text string) { t.Log(text) })
		require.NoError(t, err)
		p.server = server
	}
	return p.server.URL
}

// Exec runs statements. In these, semel is the schema.
func (s Schema) Exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	_, err := s.Pool.Exec(t.Context(), schema.Qualify(sql, s.Name), args...)
	require.NoError(t, err)
}

// Number is the result of a query for one.
func (s Schema) Number(t *testing.T, sql string, args ...any) (n int) {
	t.Helper()
	require.NoError(t, s.Pool.QueryRow(t.Context(), schema.Qualify(sql, s.Name), args...).Scan(&n))
	return n
}

// Texts are the rows of a query for one column of text.
func (s Schema) Texts(t *testing.T, sql string, args ...any) []string {
	t.Helper()
	rows, err := s.Pool.Query(t.Context(), schema.Qualify(sql, s.Name), args...)
	require.NoError(t, err)
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return found
}

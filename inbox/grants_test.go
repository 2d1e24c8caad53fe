package inbox_test

import (
	"context"
	"crypto/rand"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/schema"
)

// asApplication returns a pool of a role that has the rights of an application,
// in a database where nobody may do anything unasked.
func (b *testBundle) asApplication(t *testing.T) *pgxpool.Pool {
	t.Helper()
	cfg, err := pgxpool.ParseConfig(b.URL)
	require.NoError(t, err)
	cfg.ConnConfig.User, cfg.ConnConfig.Password = "semel_test_"+strings.ToLower(rand.Text()[:16]), rand.Text()
	role := cfg.ConnConfig.User
	b.exec(t, `CREATE ROLE `+role+` LOGIN PASSWORD '`+cfg.ConnConfig.Password+`'`)
	t.Cleanup(func() {
		_, err := b.Pool.Exec(context.WithoutCancel(t.Context()), `DROP OWNED BY `+role+`; DROP ROLE `+role)
		require.NoError(t, err)
	})
	b.exec(t, `REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA `+pgx.Identifier{b.Schema}.Sanitize()+` FROM PUBLIC`)
	var sql strings.Builder
	require.NoError(t, schema.Grants(&sql, b.Schema, schema.Application, role))
	b.exec(t, sql.String()+`GRANT INSERT ON effects TO `+role)

	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool
}

// The rights that semel migrate grants prints for an application carry all that
// the engine does.
func TestGrants_ApplicationRunsTheEngine(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.requireWholeEngine(t, b.asApplication(t))
}

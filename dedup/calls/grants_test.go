package calls_test

import (
	"context"
	"crypto/rand"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/dedup/calls"
	"github.com/semel-go/semel/schema"
)

// The rights of an application carry all that the ledger does.
func TestGrants(t *testing.T) {
	t.Parallel()

	b := setup(t)
	config, err := pgxpool.ParseConfig(b.URL)
	require.NoError(t, err)
	role, password := "semel_test_"+strings.ToLower(rand.Text()[:16]), rand.Text()
	config.ConnConfig.User, config.ConnConfig.Password = role, password
	b.exec(t, `CREATE ROLE `+role+` LOGIN PASSWORD '`+password+`'`)
	t.Cleanup(func() {
		_, err := b.Pool.Exec(context.WithoutCancel(t.Context()), `DROP OWNED BY `+role+`; DROP ROLE `+role)
		require.NoError(t, err)
	})
	b.exec(t, `REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA `+b.Schema+` FROM PUBLIC`)
	var grants strings.Builder
	require.NoError(t, schema.Grants(&grants, b.Schema, schema.Application, role))
	b.exec(t, grants.String())
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	defer pool.Close()

	b.ledger, err = calls.New(pool, calls.Config{Schema: b.Schema})
	require.NoError(t, err)
	b.unknown(t)
	records, err := b.store().List(t.Context(), pool, calls.Filter{Open: true})
	require.NoError(t, err)
	require.Len(t, records, 1)
	changed, err := b.store().Resolve(t.Context(), pool, calls.Resolution{Decision: calls.Retry}, b.ref())
	require.NoError(t, err)
	require.Len(t, changed, 1)
	_, err = b.do(t, calls.Options{})
	require.NoError(t, err)
	_, err = b.result(t)
	require.NoError(t, err)
}

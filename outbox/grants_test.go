package outbox_test

import (
	"context"
	"crypto/rand"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/schema"
)

// asPart returns a pool of a role that has the rights of a part, in a database
// where nobody may do anything unasked.
func (b *testBundle) asPart(t *testing.T, part schema.Role) *pgxpool.Pool {
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
	require.NoError(t, schema.Grants(&sql, b.Schema, part, role))
	b.exec(t, sql.String())
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool
}

// The rights that semel migrate grants prints carry all that a relay does, and
// let an application write.
func TestGrants(t *testing.T) {
	t.Parallel()

	b := setup(t)
	application, operator := b.asPart(t, schema.Application), b.asPart(t, schema.Operator)
	var broken atomic.Bool
	broken.Store(true)
	cfg := quick()
	cfg.Schema, cfg.Logger = b.Schema, slog.New(slog.DiscardHandler)
	relay, err := outbox.NewRelay(b.asPart(t, schema.Relay), &recorder{answer: refusing("1", &broken, errNo)}, cfg)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- relay.Run(ctx) }()

	require.NoError(t, pgx.BeginFunc(t.Context(), application, func(tx pgx.Tx) error {
		return b.writer.Write(t.Context(), tx, order("1", 1), order("2", 1))
	}))
	require.NoError(t, pgx.BeginFunc(t.Context(), application, func(tx pgx.Tx) error {
		return b.writer.Write(t.Context(), tx, order("3", 1))
	}))
	b.awaitPublished(t, 2)
	require.Eventually(t, func() bool { return relay.Stats().Kinds["order"].Failed > 0 }, deadline, tick)
	broken.Store(false)
	b.awaitPublished(t, 3)
	stop()
	require.NoError(t, <-done)

	_, err = operator.Exec(t.Context(), schema.Qualify(`SELECT * FROM semel.events, semel.relays, semel.relay_leases`, b.Schema))
	require.NoError(t, err)
	_, err = outbox.NewRelay(operator, &recorder{}, cfg)
	require.NoError(t, err)
}

// A relay that cannot work says so when it starts.
func TestRelay_Start(t *testing.T) {
	t.Parallel()

	b := setup(t)
	run := func(pool *pgxpool.Pool, schemaName string) error {
		cfg := quick()
		cfg.Schema, cfg.Logger = schemaName, slog.New(slog.DiscardHandler)
		relay, err := outbox.NewRelay(pool, &recorder{}, cfg)
		require.NoError(t, err)
		return relay.Run(t.Context())
	}

	err := run(b.Pool, "no_such_schema")
	require.ErrorIs(t, err, schema.ErrOutdated)
	require.ErrorContains(t, err, "start relay: ")
	require.ErrorContains(t, err, "run `semel migrate up")

	err = run(b.asPart(t, schema.Operator), b.Schema)
	require.ErrorIs(t, err, schema.ErrForbidden)
	require.ErrorContains(t, err, "GRANT UPDATE ON")
}

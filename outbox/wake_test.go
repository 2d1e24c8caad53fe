package outbox_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/outbox"
)

// lazy is a config whose relay looks by itself too seldom for a test.
func lazy() outbox.RelayConfig {
	cfg := quick()
	cfg.Poll = time.Hour
	return cfg
}

// A relay at rest is woken by its own process, and by others through the
// database.
func TestRelay_Wake(t *testing.T) {
	t.Parallel()

	t.Run("InProcess", func(t *testing.T) {
		t.Parallel()

		b := setup(t)
		b.write(t, order("first", 1))
		relay := b.relay(t, &recorder{}, lazy())
		b.awaitPublished(t, 1)
		for i := range int64(20) {
			b.write(t, order("1", i+1))
			relay.Wake()
			b.awaitPublished(t, int(i)+2)
		}
	})
	t.Run("Notified", func(t *testing.T) {
		t.Parallel()

		b := setup(t)
		b.write(t, order("first", 1))
		b.relay(t, &recorder{}, lazy())
		b.awaitPublished(t, 1)
		n := outbox.NewNotifier(b.Pool, b.Schema)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- n.Run(ctx) }()
		b.awaitListening(t)
		for i := range int64(20) {
			b.write(t, order("1", i+1))
			n.Wake()
			b.awaitPublished(t, int(i)+2)
		}
		stop()
		require.NoError(t, <-done)
	})
}

func (b *testBundle) awaitListening(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool {
		return query[int](t, b, `SELECT count(*)::int FROM pg_stat_activity WHERE query LIKE 'LISTEN %semel_outbox_%' AND wait_event = 'ClientRead'`) > 0
	}, deadline, tick)
}

// Behind a pooler in transaction mode no notification comes through. The relay
// finds that out, says so, and polls.
func TestRelay_PgBouncer(t *testing.T) {
	t.Parallel()

	b := setup(t)
	cfg, err := pgxpool.ParseConfig(b.PgBouncer(t) + "&pool_max_conns=6&default_query_exec_mode=cache_describe")
	require.NoError(t, err)
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	log := &logbook{}
	relayCfg := quick()
	relayCfg.Schema, relayCfg.Logger = b.Schema, log.logger()
	relay, err := outbox.NewRelay(pool, &recorder{}, relayCfg)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- relay.Run(ctx) }()

	log.await(t, "relay polls")
	for i := range int64(20) {
		b.write(t, order("1", i+1))
	}
	b.awaitPublished(t, 20)
	stop()
	require.NoError(t, <-done)
	require.NotContains(t, log.String(), slog.LevelError.String())
}

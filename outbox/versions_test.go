package outbox_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/schema"
)

// The tables are migrated while relays of this version work, and relays of a
// newer one start beside them: all go on, and keep order together. One that
// starts when a migration calls it too old says so, and so does one that is
// newer than the tables.
func TestRelay_OtherVersions(t *testing.T) {
	t.Parallel()

	const migrate = `INSERT INTO semel.schema_migrations (version, name, oldest_binary) VALUES ($1, 'from_the_future', $2)`
	b := setup(t)
	p := &recorder{ordered: true}
	const rounds, aggregates = 20, 30
	version := int64(0)
	write := func() {
		for range rounds {
			version++
			var events []outbox.Event
			for a := range aggregates {
				events = append(events, order(fmt.Sprint(a), version))
			}
			b.write(t, events...)
		}
	}
	start := func() error {
		cfg := quick()
		cfg.Schema, cfg.Logger = b.Schema, slog.New(slog.DiscardHandler)
		relay, err := outbox.NewRelay(b.Pool, p, cfg)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), deadline)
		defer cancel()
		return relay.Run(ctx)
	}
	before := b.relay(t, p, quick())
	b.awaitLeases(t, 64)
	write()

	b.exec(t, `ALTER TABLE semel.outbox ADD COLUMN later text NOT NULL DEFAULT ''`)
	b.exec(t, `ALTER TABLE semel.relay_leases ADD COLUMN later text NOT NULL DEFAULT ''`)
	b.exec(t, `ALTER TABLE semel.relays ADD COLUMN later text NOT NULL DEFAULT ''`)
	b.exec(t, migrate, schema.Version+1, schema.Version)
	write()
	beside := b.relay(t, p, quick())
	b.awaitLeases(t, 32, 32)
	write()

	b.exec(t, migrate, schema.Version+2, schema.Version+2)
	err := start()
	require.ErrorIs(t, err, schema.ErrTooNew)
	require.ErrorContains(t, err, "start relay: ")
	require.ErrorContains(t, err, "deploy a newer one")
	write()
	b.awaitPublished(t, 4*rounds*aggregates)
	requireOrder(t, p.messages(), 4*rounds*aggregates)
	require.Positive(t, before.Stats().Kinds["order"].Sent)
	require.Positive(t, beside.Stats().Kinds["order"].Sent)
	require.Zero(t, before.Stats().Stale+beside.Stats().Stale)

	b.exec(t, `DELETE FROM semel.schema_migrations WHERE version >= $1`, schema.Version)
	err = start()
	require.ErrorIs(t, err, schema.ErrOutdated)
	require.ErrorContains(t, err, fmt.Sprintf("it is at version %d, version %d is needed: run `semel migrate up", schema.Version-1, schema.Version))
}

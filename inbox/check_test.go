package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/dedup"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
	"github.com/semel-go/semel/schema"
	"github.com/semel-go/semel/transports/memory"
)

// with returns a pool on the same database with other session settings.
func (b *testBundle) with(t *testing.T, settings map[string]string) *pgxpool.Pool {
	t.Helper()
	cfg, err := pgxpool.ParseConfig(b.URL)
	require.NoError(t, err)
	for name, value := range settings {
		cfg.ConnConfig.RuntimeParams[name] = value
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool
}

// What can be known at start is an error at start, from Process and from Run,
// and names what to do.
func TestStart_Refused(t *testing.T) {
	t.Parallel()

	b := setup(t)
	unreachable, err := pgxpool.New(t.Context(), "postgres://app:hunter2@127.0.0.1:1/app?connect_timeout=1") //nolint:gosec // made up
	require.NoError(t, err)
	t.Cleanup(unreachable.Close)

	tests := []struct {
		name string
		pool *pgxpool.Pool
		cfg  inbox.Config
		want error
		says string
	}{
		{name: "SynchronousCommitOff", pool: b.with(t, map[string]string{"synchronous_commit": "off"}), want: inbox.ErrSynchronousCommit, says: "set it to on"},
		{name: "ReadOnly", pool: b.with(t, map[string]string{"default_transaction_read_only": "on"}), want: inbox.ErrReadOnlyDatabase, says: "primary"},
		{name: "NoTables", pool: b.Pool, cfg: inbox.Config{Schema: "nobody_made_this"}, want: schema.ErrOutdated, says: "semel migrate up"},
		{name: "Unreachable", pool: unreachable, want: inbox.ErrOutage, says: "127.0.0.1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			if tt.cfg.Schema == "" {
				tt.cfg.Schema = b.Schema
			}
			in, err := inbox.New(tt.pool, "shipping", effect, tt.cfg)
			require.NoError(t, err, "New does no I/O")
			ctx, cancel := context.WithTimeout(t.Context(), deadline)
			defer cancel()

			_, err = in.Process(ctx, message("evt_1"))
			require.ErrorIs(t, err, tt.want)
			require.ErrorContains(t, err, tt.says)
			require.ErrorContains(t, err, `"shipping"`)
			require.NotContains(t, err.Error(), "hunter2")

			err = in.Run(ctx, memory.NewSource(memory.NewQueue("payments")))
			require.ErrorIs(t, err, tt.want)
		})
	}
}

// The checks run again after they failed: mending the database is enough.
func TestStart_AgainAfterFailing(t *testing.T) {
	t.Parallel()

	b := setup(t)
	table := pgx.Identifier{b.Schema, "schema_migrations"}.Sanitize()
	b.exec(t, `ALTER TABLE `+table+` RENAME TO hidden`)
	in := b.inbox(t, effect, inbox.Config{})
	_, err := in.Process(t.Context(), message("evt_1"))
	require.ErrorIs(t, err, schema.ErrOutdated)

	b.exec(t, `ALTER TABLE `+pgx.Identifier{b.Schema, "hidden"}.Sanitize()+` RENAME TO schema_migrations`)
	outcome, err := in.Process(t.Context(), message("evt_1"))

	require.NoError(t, err)
	require.Equal(t, handler.Processed, outcome)
}

// The tables are migrated before the programs are replaced, and a program may
// be rolled back without them: a newer schema is fine unless one of its
// migrations says otherwise.
func TestStart_NewerSchema(t *testing.T) {
	t.Parallel()

	const migrate = `INSERT INTO schema_migrations (version, name, oldest_binary) VALUES ($1, 'from_the_future', $2)`
	b := setup(t)
	b.exec(t, `ALTER TABLE processed_messages ADD COLUMN later text NOT NULL DEFAULT ''`)
	b.exec(t, `ALTER TABLE dead_letters ADD COLUMN later text NOT NULL DEFAULT ''`)
	b.exec(t, migrate, schema.Version+1, schema.Version)
	in := b.inbox(t, func(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
		if msg.Type == "poison" {
			return handler.Permanent(errors.New("poison"))
		}
		return effect(ctx, tx, msg)
	}, inbox.Config{})
	for want, msg := range map[handler.Outcome]*handler.Message{
		handler.Processed: message("evt_1"),
		handler.Dead:      {ID: "evt_2", Type: "poison"},
	} {
		outcome, err := in.Process(t.Context(), msg)
		require.NoError(t, err)
		require.Equal(t, want, outcome)
	}
	require.Len(t, b.letters(t), 1)

	b.exec(t, migrate, schema.Version+2, schema.Version+2)
	_, err := b.inbox(t, effect, inbox.Config{}).Process(t.Context(), message("evt_3"))

	require.ErrorIs(t, err, schema.ErrTooNew)
	require.ErrorContains(t, err, "deploy a newer one")
	require.Zero(t, b.effects(t, "evt_3"))
}

func TestStart_MissingPermission(t *testing.T) {
	t.Parallel()

	b := setup(t)
	role := fmt.Sprintf("semel_test_%d", time.Now().UnixNano())
	b.exec(t, `CREATE ROLE `+role+` LOGIN PASSWORD 'weak'`)
	t.Cleanup(func() {
		_, err := b.Pool.Exec(context.Background(), `DROP OWNED BY `+role+`; DROP ROLE `+role)
		require.NoError(t, err)
	})
	b.exec(t, `GRANT USAGE ON SCHEMA `+pgx.Identifier{b.Schema}.Sanitize()+` TO `+role)
	b.exec(t, `GRANT SELECT ON ALL TABLES IN SCHEMA `+pgx.Identifier{b.Schema}.Sanitize()+` TO `+role)
	cfg, err := pgxpool.ParseConfig(b.URL)
	require.NoError(t, err)
	cfg.ConnConfig.User, cfg.ConnConfig.Password = role, "weak"
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	in := b.inboxOn(t, pool, "shipping", effect, inbox.Config{})

	_, err = in.Process(t.Context(), message("evt_1"))

	require.ErrorIs(t, err, schema.ErrForbidden)
	require.ErrorContains(t, err, "GRANT")
	require.ErrorContains(t, err, "processed_messages")
}

// A right that is taken away while the consumer works is an outage, loud, and
// no fault of the message.
func TestFault_RightGoneWhileRunning(t *testing.T) {
	t.Parallel()

	b := setup(t)
	pool := b.asApplication(t)
	right := `UPDATE, INSERT ON ` + pgx.Identifier{b.Schema, "processed_messages"}.Sanitize()
	role := pool.Config().ConnConfig.User
	logged := &lines{}
	in := b.inboxOn(t, pool, "shipping", effect, inbox.Config{Logger: slog.New(slog.NewTextHandler(logged, nil))})
	src := newScripted()
	r := start(t, in, src)

	b.exec(t, `REVOKE `+right+` FROM `+role)
	require.NoError(t, r.sink.Deliver(t.Context(), src.delivery(message("evt_1"), nil)))
	require.Eventually(t, func() bool {
		return logged.has("database is away", "permission denied for table processed_messages", "42501")
	}, deadline, tick)
	require.Empty(t, src.answer("evt_1"))
	b.exec(t, `GRANT `+right+` TO `+role)

	require.Eventually(t, func() bool { return src.answer("evt_1") == "settled" }, deadline, tick)
	r.stop()
	require.NoError(t, r.wait(t))
	require.Zero(t, in.Stats().FailedAttempts)
	require.Empty(t, b.letters(t))
	require.Equal(t, 1, b.effects(t, "evt_1"))
}

// lines are what was logged.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), text)
}

// has reports whether one line has all parts.
func (l *lines) has(parts ...string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.text.String()) {
		if !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(line, part) }) {
			return true
		}
	}
	return false
}

// All settings of synchronous_commit but off leave a commit on the disk before
// it is answered.
func TestStart_SynchronousCommit(t *testing.T) {
	t.Parallel()

	b := setup(t)
	for _, value := range []string{"on", "local", "remote_write", "remote_apply"} {
		in := b.inboxOn(t, b.with(t, map[string]string{"synchronous_commit": value}), "shipping", effect, inbox.Config{})
		outcome, err := in.Process(t.Context(), message(value))
		require.NoError(t, err, value)
		require.Equal(t, handler.Processed, outcome)
	}

	// A DBA can set it for the role, where no program sees it in its own settings.
	pool := b.asApplication(t)
	b.exec(t, `ALTER ROLE `+pool.Config().ConnConfig.User+` SET synchronous_commit = off`)
	_, err := b.inboxOn(t, pool, "shipping", effect, inbox.Config{}).Process(t.Context(), message("off"))
	require.ErrorIs(t, err, inbox.ErrSynchronousCommit)
}

// Ids and texts are UTF-8: a database that stores other bytes is refused.
func TestStart_Encoding(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.exec(t, `CREATE DATABASE `+b.Schema+` ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0`)
	t.Cleanup(func() {
		_, err := b.Pool.Exec(context.WithoutCancel(t.Context()), `DROP DATABASE `+b.Schema+` WITH (FORCE)`)
		require.NoError(t, err)
	})
	cfg := b.Pool.Config()
	cfg.ConnConfig.Database = b.Schema
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(pool.Close)

	_, err = b.inboxOn(t, pool, "shipping", effect, inbox.Config{}).Process(t.Context(), message("evt_1"))

	require.ErrorIs(t, err, inbox.ErrEncoding)
	require.ErrorContains(t, err, "SQL_ASCII")
}

// Two names with one number would take each other's messages for duplicates.
func TestStart_ConsumerCollision(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.exec(t, `INSERT INTO `+pgx.Identifier{b.Schema, "consumers"}.Sanitize()+` (id, name) VALUES ($1, 'another')`, dedup.ConsumerID("shipping"))

	_, err := b.inbox(t, effect, inbox.Config{}).Process(t.Context(), message("evt_1"))

	require.ErrorIs(t, err, dedup.ErrConsumerCollision)
	require.ErrorContains(t, err, `"another"`)
}

func TestRun_NoSource(t *testing.T) {
	t.Parallel()

	require.ErrorContains(t, setup(t).inbox(t, effect, inbox.Config{}).Run(t.Context(), nil), "source is nil")
}

package dedup_test

import (
	"context"
	"crypto/rand"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/dedup"
	"github.com/semel-go/semel/internal/pgtest"
)

// someSettings have every field.
func someSettings() dedup.Settings {
	return dedup.Settings{
		Workers: 8, PoolSize: 10,
		Retention: 14 * 24 * time.Hour, HandlerTimeout: 1500 * time.Millisecond, MaxPayload: 16 << 20,
		Ordering: "strict", TooOld: "run",
		RetryAttempts: 8, RetryMaxAge: 36 * time.Hour, DeadLetterRetention: -1,
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()

	b := setupPurge(t) // with the consumers billing and shipping
	want := someSettings()

	require.NoError(t, b.store.NoteSettings(t.Context(), b.Pool, "shipping", want))

	got, err := b.store.LoadSettings(t.Context(), b.Pool)
	require.NoError(t, err)
	require.Len(t, got, 2)
	require.Equal(t, dedup.ConsumerSettings{Consumer: "billing"}, got[0], "it has noted nothing")
	require.Equal(t, "shipping", got[1].Consumer)
	require.Equal(t, want, got[1].Settings)
	require.WithinDuration(t, time.Now(), got[1].NotedAt, time.Hour)
	require.Equal(t, []string{`{"too_old": "run", "workers": 8, "ordering": "strict", "pool_size": 10, "retention": 1209600, "max_payload": 16777216, ` +
		`"retry_max_age": 129600, "retry_attempts": 8, "handler_timeout": 1.5, "dead_letter_retention": -1}`},
		b.strings(t, `SELECT settings::text FROM consumers WHERE settings IS NOT NULL`), "as people read it: seconds")
}

// A consumer that starts often writes only what has changed.
func TestSettings_NotedWhenChangedAndOnceADay(t *testing.T) {
	t.Parallel()

	b := setupPurge(t)
	settings := someSettings()
	// The version of the row tells whether it was written.
	note := func() []string {
		t.Helper()
		require.NoError(t, b.store.NoteSettings(t.Context(), b.Pool, "shipping", settings))
		return b.strings(t, `SELECT ctid::text FROM consumers WHERE name = 'shipping'`)
	}
	first := note()
	require.Equal(t, first, note())

	settings.Workers++
	second := note()
	require.NotEqual(t, first, second)

	for _, at := range []string{`now() - interval '25 hours'`, `now() + interval '1 hour'`, `NULL`} {
		b.exec(t, `UPDATE consumers SET settings_at = `+at+` WHERE name = 'shipping'`)
		before := b.strings(t, `SELECT ctid::text FROM consumers WHERE name = 'shipping'`)
		require.NotEqual(t, before, note(), at)
		require.Equal(t, []string{"shipping"}, b.strings(t, `SELECT name FROM consumers WHERE settings_at BETWEEN now() - interval '1 hour' AND now()`), at)
	}

	b.exec(t, `UPDATE consumers SET settings_at = now() - interval '23 hours' WHERE name = 'shipping'`)
	before := b.strings(t, `SELECT ctid::text FROM consumers WHERE name = 'shipping'`)
	require.Equal(t, before, note())
}

func TestSettings_OfNobody(t *testing.T) {
	t.Parallel()

	b := setupPurge(t)
	require.NoError(t, b.store.NoteSettings(t.Context(), b.Pool, "unregistered", someSettings()))

	got, err := b.store.LoadSettings(t.Context(), b.Pool)
	require.NoError(t, err)
	require.Equal(t, []dedup.ConsumerSettings{{Consumer: "billing"}, {Consumer: "shipping"}}, got)
}

// A role with the rights of an earlier version starts all the same.
func TestSettings_Forbidden(t *testing.T) {
	t.Parallel()

	b := setupPurge(t)
	role := pgx.Identifier{"semel_test_" + rand.Text()}.Sanitize()
	b.exec(t, `CREATE ROLE `+role)
	t.Cleanup(func() {
		_, err := b.Pool.Exec(context.WithoutCancel(t.Context()), `DROP OWNED BY `+role+`; DROP ROLE `+role)
		require.NoError(t, err)
	})
	b.exec(t, `GRANT USAGE ON SCHEMA `+pgx.Identifier{b.Schema}.Sanitize()+` TO `+role)
	b.exec(t, `GRANT SELECT, INSERT ON consumers TO `+role)
	conn, err := b.Pool.Acquire(t.Context())
	require.NoError(t, err)
	defer conn.Release()
	_, err = conn.Exec(t.Context(), `SET ROLE `+role)
	require.NoError(t, err)
	defer func() {
		_, err := conn.Exec(t.Context(), `RESET ROLE`)
		require.NoError(t, err)
	}()

	require.NoError(t, b.store.NoteSettings(t.Context(), conn, "shipping", someSettings()))

	got, err := b.store.LoadSettings(t.Context(), conn)
	require.NoError(t, err)
	require.Zero(t, got[1].NotedAt)
}

// Every other error is one.
func TestSettings_NoTables(t *testing.T) {
	t.Parallel()

	db := pgtest.New(t)
	nowhere := dedup.NewStore("semel_test_nowhere")
	var pg *pgconn.PgError

	err := nowhere.NoteSettings(t.Context(), db.Pool, "shipping", someSettings())
	require.ErrorContains(t, err, `note the settings of consumer "shipping"`)
	require.ErrorAs(t, err, &pg)
	require.Equal(t, "42P01", pg.Code)

	_, err = nowhere.LoadSettings(t.Context(), db.Pool)
	require.ErrorContains(t, err, "load the settings of consumers")
	require.ErrorAs(t, err, &pg)
}

// Under strict isolation a process that starts at the same moment makes the
// statement fail. It is run again.
func TestSettings_NotedAtOnce(t *testing.T) {
	t.Parallel()

	b := setupPurge(t)
	config, err := pgxpool.ParseConfig(b.URL)
	require.NoError(t, err)
	config.ConnConfig.RuntimeParams["default_transaction_isolation"] = "serializable"
	strict, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(strict.Close)
	other, err := b.Pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = other.Exec(t.Context(), `UPDATE consumers SET settings = '{"workers": 1}', settings_at = now() WHERE name = 'shipping'`)
	require.NoError(t, err)
	noted := make(chan error)
	go func() { noted <- b.store.NoteSettings(t.Context(), strict, "shipping", someSettings()) }()
	require.Eventually(t, func() bool {
		return len(b.strings(t, `SELECT 'waits' FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND application_name = current_setting('application_name')`)) == 1
	}, time.Minute, 10*time.Millisecond)

	require.NoError(t, other.Commit(t.Context()))

	require.NoError(t, <-noted)
	got, err := b.store.LoadSettings(t.Context(), b.Pool)
	require.NoError(t, err)
	require.Equal(t, someSettings(), got[1].Settings)
}

// A newer program may note more than this one knows.
func TestSettings_Newer(t *testing.T) {
	t.Parallel()

	b := setupPurge(t)
	b.exec(t, `UPDATE consumers SET settings = '{"workers": 3, "novelty": {}}', settings_at = now() WHERE name = 'shipping'`)

	got, err := b.store.LoadSettings(t.Context(), b.Pool)
	require.NoError(t, err)
	require.Equal(t, dedup.Settings{Workers: 3}, got[1].Settings)
}

// Package pgtest gives each database test a migrated schema of its own.
package pgtest

import (
	"context"
	"crypto/rand"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/internal/services"
	"github.com/semel-go/semel/schema"
)

// DB is a schema in the database of DATABASE_URL, with all our tables and
// nothing in them. It is dropped when its test ends.
type DB struct {
	// Schema is its name, as it is given to a Config.
	Schema string

	// Pool connects to it. The schema is the search path too, so the tables
	// that a test makes for its own effects land there. 10 connections; for
	// more see [DB.NewPool].
	Pool *pgxpool.Pool

	// URL is the connection string of Pool, for child processes.
	URL string
}

// maxConns is enough for a test; all packages at once must not use up the server.
const maxConns = 10

// timeout bounds what is done before and after a test.
const timeout = 30 * time.Second

// New makes a schema for tb and migrates it. Without a database the test is
// skipped, or fails (see [services.Postgres]).
//
// When the test ends, every pool made here must have all its connections back,
// free of locks: a leaked connection fails the test.
func New(tb testing.TB) *DB {
	tb.Helper()
	base := services.Postgres(tb)
	name := "semel_test_" + strings.ToLower(rand.Text()[:16])
	db := &DB{Schema: name, URL: withSettings(base, name)}

	tb.Cleanup(func() { drop(tb, base, name) }) // runs last, after the pools
	db.Pool = db.NewPool(tb, maxConns)

	ctx, cancel := context.WithTimeout(tb.Context(), timeout)
	defer cancel()
	_, err := schema.Up(ctx, db.Pool, name, 0)
	require.NoError(tb, err, "prepare a schema in the database that %s names", services.PostgresVariable)
	return db
}

// NewPool returns a further pool of its own on the schema; it is closed when
// the test ends.
func (db *DB) NewPool(tb testing.TB, maxConns int32) *pgxpool.Pool {
	tb.Helper()
	config, err := pgxpool.ParseConfig(db.URL)
	require.NoError(tb, err)
	config.MaxConns = maxConns
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	require.NoError(tb, err)
	tb.Cleanup(func() { requireReturned(tb, pool) })
	return pool
}

// withSettings adds to a connection string, URL or key=value, that the schema
// is the search path, and its name the application's: that is how drop finds
// the connections it belongs to.
func withSettings(base, name string) string {
	u, err := url.Parse(base)
	if err != nil || (u.Scheme != "postgres" && u.Scheme != "postgresql") {
		return base + " search_path=" + name + " application_name=" + name
	}
	q := u.Query()
	q.Set("search_path", name)
	q.Set("application_name", name)
	u.RawQuery = q.Encode()
	return u.String()
}

// drop ends the connections that are still on the schema, those of killed
// child processes or leaked ones, so that it does not wait for their locks.
func drop(tb testing.TB, base, name string) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, base)
	require.NoError(tb, err, "connect to the database that %s names", services.PostgresVariable)
	defer func() { _ = conn.Close(ctx) }()
	_, err = conn.Exec(ctx, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1`, name)
	require.NoError(tb, err)
	_, err = conn.Exec(ctx, `DROP SCHEMA IF EXISTS `+pgx.Identifier{name}.Sanitize()+` CASCADE`)
	require.NoError(tb, err)
}

package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel/bench/byhand"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
	"github.com/semel-go/semel/schema"
)

const databaseVariable = "DATABASE_URL"

// database is a schema that belongs to one benchmark, and a pool that both
// sides use: the same connections, the same statement cache.
type database struct {
	pool   *pgxpool.Pool
	schema string
}

// dialFunc opens the connections of a pool.
type dialFunc = pgconn.DialFunc

// newDatabase makes a schema with our tables, the baseline's tables and the
// accounts. The pool has room for n workers.
func newDatabase(ctx context.Context, n int) (*database, error) {
	db := &database{schema: "semel_bench_" + strings.ToLower(rand.Text()[:12])}
	var err error
	if db.pool, err = newPool(ctx, db.schema, n, nil); err != nil {
		return nil, err
	}
	if err := db.fill(ctx); err != nil {
		db.drop()
		return nil, fmt.Errorf("prepare schema %s: %w", db.schema, err)
	}
	return db, nil
}

// newPool has two connections more than workers, as an inbox wants it.
func newPool(ctx context.Context, schemaName string, n int, dial dialFunc) (*pgxpool.Pool, error) {
	config, err := databaseConfig()
	if err != nil {
		return nil, err
	}
	config.MaxConns = int32(n) + 2
	config.ConnConfig.RuntimeParams["search_path"] = schemaName
	if dial != nil {
		config.ConnConfig.DialFunc = dial
	}
	return pgxpool.NewWithConfig(ctx, config)
}

func databaseConfig() (*pgxpool.Config, error) {
	url := os.Getenv(databaseVariable)
	if url == "" {
		return nil, fmt.Errorf("%s is not set: use make bench, or name a PostgreSQL database", databaseVariable)
	}
	config, err := pgxpool.ParseConfig(url)
	if err != nil { // its text may hold the password
		return nil, fmt.Errorf("read %s: it is no connection string", databaseVariable)
	}
	return config, nil
}

func (db *database) fill(ctx context.Context) error {
	if _, err := schema.Up(ctx, db.pool, db.schema, 0); err != nil {
		return err
	}
	for _, statement := range []string{
		byhand.Table,
		byhand.OutboxTable,
		byhand.WebhookTable,
		`CREATE TABLE accounts (id int PRIMARY KEY, balance bigint NOT NULL)`,
		fmt.Sprintf(`INSERT INTO accounts SELECT n, 0 FROM generate_series(1, %d) AS n`, accounts),
		`VACUUM ANALYZE accounts`,
	} {
		if _, err := db.pool.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// drop removes the schema whatever became of the benchmark.
func (db *database) drop() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, _ = db.pool.Exec(ctx, `DROP SCHEMA IF EXISTS `+pgx.Identifier{db.schema}.Sanitize()+` CASCADE`)
	db.pool.Close()
}

// inbox is an engine on pool with its defaults.
func (db *database) inbox(pool *pgxpool.Pool, consumer string, h handler.Func, observer inbox.Observer) (*inbox.Inbox, error) {
	return inbox.New(pool, consumer, h, inbox.Config{Schema: db.schema, Observer: observer, Logger: silent()})
}

// silent keeps the lines of a benchmark together.
func silent() *slog.Logger { return slog.New(slog.DiscardHandler) }

// serverSettings are what a rate cannot be read without.
func serverSettings(ctx context.Context) (string, error) {
	config, err := databaseConfig()
	if err != nil {
		return "", err
	}
	conn, err := pgx.ConnectConfig(ctx, config.ConnConfig)
	var opErr *net.OpError
	if errors.As(err, &opErr) {
		return "", fmt.Errorf("connect to the database that %s names: %w", databaseVariable, opErr)
	}
	if err != nil {
		return "", fmt.Errorf("connect to the database that %s names: %w", databaseVariable, err)
	}
	defer func() { _ = conn.Close(ctx) }()
	var settings string
	err = conn.QueryRow(ctx, `
		SELECT 'PostgreSQL ' || current_setting('server_version')
		    || ', fsync=' || current_setting('fsync')
		    || ', synchronous_commit=' || current_setting('synchronous_commit')
		    || ', shared_buffers=' || current_setting('shared_buffers')`).Scan(&settings)
	if err != nil {
		return "", fmt.Errorf("read the server's settings: %w", err)
	}
	return settings, nil
}

// Package exampledb gives an Example a database of its own. An Example uses the
// default schema, as a service does, and that schema of the test database is
// nobody's alone. Package pgtest cannot help it: an Example has no testing.TB.
//
// A package with such examples calls services.SkipExamples in its TestMain.
package exampledb

import (
	"context"
	"crypto/rand"
	"fmt"
	"log"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel/internal/services"
	"github.com/semel-go/semel/schema"
)

// timeout bounds each thing done here; it is generous to a busy machine.
const timeout = time.Minute

// Open makes a database beside the one that DATABASE_URL names, and returns a
// pool on it. It has Semel's tables and those of a shop: a table orders, in
// which order 42 is NEW. done closes the pool and drops the database.
//
// An Example has nobody to return an error to, so here errors end the program.
func Open() (pool *pgxpool.Pool, done func()) {
	base := strings.TrimSpace(os.Getenv(services.PostgresVariable))
	if base == "" {
		log.Fatalf("open a database for an example: this run must skip nothing, but %s is not set", services.PostgresVariable)
	}
	name := pgx.Identifier{"semel_example_" + strings.ToLower(rand.Text()[:16])}
	must(administer(base, "CREATE DATABASE "+name.Sanitize()+" ENCODING 'UTF8' TEMPLATE template0"))
	done = func() {
		if pool != nil {
			pool.Close()
		}
		must(administer(base, "DROP DATABASE "+name.Sanitize()+" WITH (FORCE)"))
	}
	pool, err := connect(base, name[0])
	if err != nil {
		done()
		must(err)
	}
	return pool, done
}

// Status returns the status of an order.
func Status(pool *pgxpool.Pool, order int64) string {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	var status string
	must(pool.QueryRow(ctx, `SELECT status FROM orders WHERE id = $1`, order).Scan(&status))
	return status
}

// Await returns when an order has a status.
func Await(pool *pgxpool.Pool, order int64, status string) {
	late := time.After(timeout)
	for Status(pool, order) != status {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-late:
			must(fmt.Errorf("wait for order %d to be %s: it is %s after %s", order, status, Status(pool, order), timeout))
		}
	}
}

// connect returns a pool on a new database, with all tables in it.
func connect(base, database string) (*pgxpool.Pool, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	config, err := pgxpool.ParseConfig(base)
	if err != nil {
		return nil, err
	}
	config.ConnConfig.Database = database
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	if _, err = schema.Up(ctx, pool, schema.Default, 0); err == nil {
		_, err = pool.Exec(ctx, `CREATE TABLE orders AS SELECT 42::bigint AS id, 'NEW' AS status`)
	}
	if err != nil {
		pool.Close()
		return nil, err
	}
	return pool, nil
}

// administer runs a statement in the test database.
func administer(base, sql string) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, base)
	if err != nil {
		return err
	}
	defer conn.Close(ctx) //nolint:errcheck // nothing hangs on it
	_, err = conn.Exec(ctx, sql)
	return err
}

func must(err error) {
	if err != nil {
		log.Fatalf("the database of an example: %v (to leave examples out: go test -skip ^Example)", err)
	}
}

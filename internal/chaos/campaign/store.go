package campaign

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel/schema"
)

// tablesSQL creates the tables of the effects.
//
//go:embed queries/tables.sql
var tablesSQL string

// createStore makes a schema with Semel's tables and those of the effects.
func createStore(ctx context.Context, pool *pgxpool.Pool, name string) error {
	if _, err := schema.Up(ctx, pool, name, 0); err != nil {
		return err
	}
	if _, err := pool.Exec(ctx, schema.Qualify(tablesSQL, name)); err != nil {
		return fmt.Errorf("create the tables of the effects in schema %q: %w", name, err)
	}
	if _, err := pool.Exec(ctx, schema.Qualify(`INSERT INTO semel.balances (key) SELECT unnest($1::text[])`, name), keys()); err != nil {
		return fmt.Errorf("fill the balances of schema %q: %w", name, err)
	}
	return nil
}

// dropStore ends what killed children have left on the server and drops the
// schema.
func dropStore(ctx context.Context, pool *pgxpool.Pool, name string) error {
	_, err := pool.Exec(ctx, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1`, name)
	if err == nil {
		_, err = pool.Exec(ctx, `DROP SCHEMA IF EXISTS `+pgx.Identifier{name}.Sanitize()+` CASCADE`)
	}
	if err != nil {
		return fmt.Errorf("drop schema %q: %w", name, err)
	}
	return nil
}

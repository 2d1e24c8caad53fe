package database

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"
)

// NewPool connects to the schema of one run of an example. Unqualified names
// are the service's own tables; Semel's queries name theirs in full. The
// application is what pg_stat_activity shows, behind the schema.
func NewPool(ctx context.Context, url, schemaName, application string, size int32) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("read the connection string: %w", err)
	}
	config.MaxConns = size
	config.ConnConfig.RuntimeParams["search_path"] = schemaName
	config.ConnConfig.RuntimeParams["application_name"] = schemaName + " " + application
	return pgxpool.NewWithConfig(ctx, config)
}

package codectest

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
)

// TablesWith returns the tables of a schema that have text in some row, also in
// its columns of bytes and in lists of those.
func TablesWith(t *testing.T, pool *pgxpool.Pool, schema, text string) []string {
	t.Helper()
	rows, err := pool.Query(t.Context(), `SELECT tablename FROM pg_tables WHERE schemaname = $1 ORDER BY tablename`, schema)
	require.NoError(t, err)
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	require.Greater(t, len(tables), 5)
	var found []string
	for _, table := range tables {
		// Bytes in a row that is cast to text are written in hex.
		var n int
		require.NoError(t, pool.QueryRow(t.Context(), `SELECT count(*) FROM `+pgx.Identifier{schema, table}.Sanitize()+` AS t
			WHERE strpos(t::text, $1::text) > 0 OR strpos(t::text, encode(convert_to($1, 'UTF8'), 'hex')) > 0`, text).Scan(&n), table)
		if n > 0 {
			found = append(found, table)
		}
	}
	return found
}

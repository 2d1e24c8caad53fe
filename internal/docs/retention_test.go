package docs_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/internal/pgtest"
	"github.com/semel-go/semel/schema"
)

// The statement in docs/retention.md deletes what is old, and neither what is
// young nor what has an open dead letter.
func TestRetention_DeletesWhatItSays(t *testing.T) {
	t.Parallel()

	db := pgtest.New(t)
	statements := blocks(read(t, "docs/retention.md"), "sql")
	require.Len(t, statements, 1)
	_, err := db.Pool.Exec(t.Context(), schema.Qualify(`
		INSERT INTO semel.processed_messages (consumer_id, message_id, message_text, outcome, processed_at)
		SELECT 1, semel.message_id(id), id, outcome, clock_timestamp() - age
		FROM (VALUES
			('old', 1, interval '15 days'), ('old and skipped', 3, interval '15 days'), ('young', 1, interval '13 days'),
			('open', 5, interval '15 days'), ('replaying', 5, interval '15 days'), ('resolved', 1, interval '15 days')
		) AS rows (id, outcome, age);
		INSERT INTO semel.dead_letters (consumer_id, message_id, reason, state)
		SELECT 1, semel.message_id(state), 'permanent', state
		FROM (VALUES ('open'), ('replaying'), ('resolved')) AS rows (state)`, db.Schema))
	require.NoError(t, err)

	for _, want := range []int64{3, 0} {
		tag, err := db.Pool.Exec(t.Context(), schema.Qualify(statements[0], db.Schema))
		require.NoError(t, err)
		require.Equal(t, want, tag.RowsAffected())
	}

	rows, err := db.Pool.Query(t.Context(), schema.Qualify(`SELECT message_text FROM semel.processed_messages ORDER BY 1`, db.Schema))
	require.NoError(t, err)
	left, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	require.Equal(t, []string{"open", "replaying", "young"}, left)
}

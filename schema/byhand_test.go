package schema_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/schema"
)

// Somebody changes when a migration was applied. Every consumer, relay and command
// looks at that table first, and what no clock can say must not keep them from their
// start, nor look as if the migration were not applied.
func TestApplied_ByHand(t *testing.T) {
	t.Parallel()

	for _, at := range []string{"infinity", "-infinity", "0044-03-15 BC", "0001-01-01 00:00Z", "20000-01-01"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()

			b := setup(t)
			b.up(t)
			b.exec(t, `UPDATE semel.schema_migrations SET applied_at = '`+at+`' WHERE version >= 3`)

			require.NoError(t, schema.Check(t.Context(), b.pool, b.name))
			done, err := schema.Up(t.Context(), b.pool, b.name, 0)
			require.NoError(t, err)
			require.Empty(t, done)
			status, err := schema.Status(t.Context(), b.pool, b.name)
			require.NoError(t, err)
			require.Len(t, status, schema.Version)
			for _, m := range status {
				require.True(t, m.Applied, m.Name)
			}
			done, err = schema.Down(t.Context(), b.pool, b.name, schema.Version-1)
			require.NoError(t, err)
			require.Len(t, done, 1)
			status, err = schema.Status(t.Context(), b.pool, b.name)
			require.NoError(t, err)
			require.False(t, status[schema.Version-1].Applied)
		})
	}
}

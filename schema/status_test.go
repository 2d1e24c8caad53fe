package schema_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/schema"
)

func TestCheck(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name  string
		setup string // what was done to a migrated schema
		want  error
		text  string
	}{
		{name: "Migrated"},
		{name: "NewerButFine", setup: `INSERT INTO semel.schema_migrations VALUES (99, 'add_column', 1)`},
		{
			name: "TooNew", setup: `INSERT INTO semel.schema_migrations VALUES (99, 'drop_column', 99)`,
			want: schema.ErrTooNew, text: "migration 99 (drop_column) needs a program built for version 99 or newer",
		},
		{name: "Older", setup: `DELETE FROM semel.schema_migrations`, want: schema.ErrOutdated, text: "run `semel migrate up -schema "},
		{name: "NoTables", setup: `DROP TABLE semel.schema_migrations`, want: schema.ErrOutdated, text: "it has no tables"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			b := setup(t)
			b.up(t)
			if tt.setup != "" {
				b.exec(t, tt.setup)
			}

			err := schema.Check(t.Context(), b.pool, b.name)

			if tt.want == nil {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, tt.want)
			require.ErrorContains(t, err, tt.text)
		})
	}
}

func TestCheck_NoSchema(t *testing.T) {
	t.Parallel()

	b := setup(t)

	require.ErrorIs(t, schema.Check(t.Context(), b.pool, b.name), schema.ErrOutdated)
	require.ErrorIs(t, schema.Check(t.Context(), b.pool, "a\x00b"), schema.ErrName)
}

func TestCheck_LeavesTheConnectionUsable(t *testing.T) {
	t.Parallel()

	b := setup(t)
	conn, err := pgx.ConnectConfig(t.Context(), b.pool.Config().ConnConfig)
	require.NoError(t, err)
	defer conn.Close(t.Context()) //nolint:errcheck // nothing hangs on it

	require.Error(t, schema.Check(t.Context(), conn, b.name))

	require.Equal(t, byte('I'), conn.PgConn().TxStatus())
	require.NoError(t, conn.Ping(t.Context()))
}

func TestCheck_WithoutTheRight(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.up(t)
	quoted := pgx.Identifier{b.name}.Sanitize()
	stranger, role := b.asRole(t)

	err := schema.Check(t.Context(), stranger, b.name)
	require.ErrorIs(t, err, schema.ErrForbidden)
	require.ErrorContains(t, err, "GRANT USAGE ON SCHEMA "+quoted)

	reader, _ := b.asRole(t, "GRANT USAGE ON SCHEMA "+quoted, "GRANT SELECT ON semel.schema_migrations")
	require.NoError(t, schema.Check(t.Context(), reader, b.name))

	err = schema.CheckAccess(t.Context(), stranger, b.name, schema.Application)
	require.ErrorIs(t, err, schema.ErrForbidden)
	require.ErrorContains(t, err, "GRANT USAGE ON SCHEMA "+quoted+` TO "`+role+`"`)
	require.ErrorContains(t, err, "GRANT UPDATE ON "+quoted+`.processed_messages TO "`+role+`"`)

	require.NoError(t, schema.CheckAccess(t.Context(), b.pool, b.name, schema.Application))
	b.exec(t, "DROP TABLE semel.consumers CASCADE")
	require.ErrorContains(t, schema.CheckAccess(t.Context(), b.pool, b.name, schema.Application), "table "+quoted+".consumers is missing")
}

// The rights that CheckAccess asks for are enough.
func TestCheckAccess_OfAConsumer(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.up(t)
	consumer, _ := b.asRole(t,
		"GRANT USAGE ON SCHEMA "+pgx.Identifier{b.name}.Sanitize(),
		"GRANT SELECT, INSERT ON semel.consumers", "GRANT SELECT, INSERT, UPDATE ON semel.processed_messages, semel.dead_letters",
		"GRANT SELECT, INSERT, UPDATE, DELETE ON semel.inbox_messages, semel.attempt_journal")

	require.NoError(t, schema.CheckAccess(t.Context(), consumer, b.name, schema.Application))
}

func TestStatus(t *testing.T) {
	t.Parallel()

	b := setup(t)
	status, err := schema.Status(t.Context(), b.pool, b.name)
	require.NoError(t, err)
	require.Len(t, status, schema.Version)
	require.Zero(t, status[0].AppliedAt)

	b.up(t)
	b.exec(t, `INSERT INTO semel.schema_migrations VALUES (99, 'from_the_future', 7), (0, 'by_hand', 0)`)
	status, err = schema.Status(t.Context(), b.pool, b.name)

	require.NoError(t, err)
	require.Equal(t, 1, status[0].Version)
	require.Equal(t, "create_tables", status[0].Name)
	require.Equal(t, 1, status[0].OldestBinary)
	require.WithinDuration(t, time.Now(), status[0].AppliedAt, time.Hour)
	last := status[len(status)-1]
	require.Equal(t, []any{99, "from_the_future", 7}, []any{last.Version, last.Name, last.OldestBinary})
}

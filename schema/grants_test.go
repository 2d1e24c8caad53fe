package schema_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/schema"
)

// grants returns the statements for a role, one each.
func (b *testBundle) grants(t *testing.T, part schema.Role, role string) []string {
	t.Helper()
	var sql strings.Builder
	require.NoError(t, schema.Grants(&sql, b.name, part, role))
	var statements []string
	for line := range strings.Lines(sql.String()) {
		if strings.HasPrefix(line, "GRANT ") {
			statements = append(statements, line)
		}
	}
	return statements
}

// asPart returns a pool of a role that may do what Grants gives to a part, in a
// database where nobody may do anything unasked.
func (b *testBundle) asPart(t *testing.T, part schema.Role) (pool *pgxpool.Pool, role string) {
	t.Helper()
	b.exec(t, "REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA "+pgx.Identifier{b.name}.Sanitize()+" FROM PUBLIC")
	pool, role = b.asRole(t)
	for _, grant := range b.grants(t, part, role) {
		_, err := b.pool.Exec(t.Context(), grant)
		require.NoError(t, err, grant)
	}
	return pool, role
}

// refused requires that the role lacks the right to run each statement.
func (b *testBundle) refused(t *testing.T, pool *pgxpool.Pool, statements ...string) {
	t.Helper()
	for _, sql := range statements {
		_, err := pool.Exec(t.Context(), schema.Qualify(sql, b.name))
		var pg *pgconn.PgError
		require.ErrorAs(t, err, &pg, sql)
		require.Equal(t, "42501", pg.Code, sql)
	}
}

// ddl is what no part may do.
var ddl = [...]string{
	`CREATE TABLE semel.mine (id int)`,
	`ALTER TABLE semel.processed_messages ADD COLUMN mine int`,
	`DROP TABLE semel.processed_messages`,
	`DROP INDEX semel.dead_letters_id_idx`,
	`DROP VIEW semel.dead`,
	`TRUNCATE semel.dead_letters`,
	`DELETE FROM semel.consumers`,
	`INSERT INTO semel.schema_migrations VALUES (2, 'mine', 1)`,
	`UPDATE semel.schema_migrations SET oldest_binary = 9`,
}

// That these rights carry the whole engine is tested in inbox.
func TestGrants_Application(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.up(t)
	app, role := b.asPart(t, schema.Application)
	b.refused(t, app, ddl[:]...)
	b.refused(t, app, `UPDATE semel.consumers SET name = 'mine'`, `SELECT FROM semel.dead`, `SELECT FROM semel.processed`, `SELECT FROM semel.stored`)
	b.requireAllChecked(t, app, schema.Application, role)
}

// That the commands of an operator work with these rights is tested in cmd/semel.
func TestGrants_Operator(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.up(t)
	operator, _ := b.asPart(t, schema.Operator)

	for _, sql := range []string{
		`SELECT * FROM semel.dead`,
		`SELECT * FROM semel.processed`,
		`SELECT semel.consumer_id('shipping'), semel.message_id('evt_1'), semel.fingerprint('a', 'b'), semel.outcome_name(1::smallint), semel.as_text('a')`,
	} {
		_, err := operator.Exec(t.Context(), schema.Qualify(sql, b.name))
		require.NoError(t, err, sql)
	}
	b.refused(t, operator, ddl[:]...)
	b.refused(t, operator,
		`INSERT INTO semel.consumers (id, name) VALUES (1, 'mine')`,
		`INSERT INTO semel.processed_messages (message_id, consumer_id, outcome) VALUES (gen_random_uuid(), 1, 1)`,
		`UPDATE semel.processed_messages SET outcome = 3`,
		`DELETE FROM semel.processed_messages`,
		`UPDATE semel.consumers SET purged_before = now()`,
		`UPDATE semel.dead_letters SET state = 'discarded'`,
		`INSERT INTO semel.dead_letters (consumer_id, message_id, reason) VALUES (1, gen_random_uuid(), 'permanent')`)
}

// That these rights carry a whole relay is tested in outbox.
func TestGrants_Relay(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.up(t)
	relay, role := b.asPart(t, schema.Relay)

	b.requireAllChecked(t, relay, schema.Relay, role)
	b.refused(t, relay, `CREATE TABLE semel.mine (id int)`, `DROP TABLE semel.outbox`, `TRUNCATE semel.outbox`,
		`INSERT INTO semel.outbox (id, aggregatetype, aggregateid, type) VALUES (gen_random_uuid(), 'a', 'b', 'c')`,
		`DELETE FROM semel.relay_leases`, `SELECT FROM semel.processed_messages`, `SELECT FROM semel.dead_letters`)
}

// requireAllChecked requires that the start check misses each right that Grants
// gives to the part, but for those that a program may do without.
func (b *testBundle) requireAllChecked(t *testing.T, pool *pgxpool.Pool, part schema.Role, role string) {
	t.Helper()
	check := func() error {
		if err := schema.Check(t.Context(), pool, b.name); err != nil {
			return err
		}
		return schema.CheckAccess(t.Context(), pool, b.name, part)
	}
	require.NoError(t, check())
	for _, grant := range b.grants(t, part, role) {
		switch {
		case strings.Contains(grant, "FUNCTION"),
			part == schema.Application && (strings.Contains(grant, ".outbox ") || strings.Contains(grant, ".calls ") || strings.Contains(grant, ".key_versions ") || strings.HasPrefix(grant, "GRANT DELETE") || strings.Contains(grant, "(purged_before, ")):
			continue // not every application writes events, calls, guards versions, or purges
		case part == schema.Relay && strings.Contains(grant, ".archive_batches "):
			continue // not every relay archives
		}
		revoke := strings.Replace(strings.Replace(grant, "GRANT ", "REVOKE ", 1), " TO ", " FROM ", 1)
		_, err := b.pool.Exec(t.Context(), revoke)
		require.NoError(t, err, revoke)
		require.ErrorIs(t, check(), schema.ErrForbidden, revoke)
		_, err = b.pool.Exec(t.Context(), grant)
		require.NoError(t, err)
	}
	require.NoError(t, check())
}

func TestGrants_Refused(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name   string
		schema string
		part   schema.Role
		role   string
		want   error
	}{
		{name: "Schema", schema: "a\nb", part: schema.Application, role: "app", want: schema.ErrName},
		{name: "NoSuchPart", part: "owner", role: "app", want: schema.ErrRole},
		{name: "NoName", part: schema.Application, want: schema.ErrRole},
		{name: "NameTooLong", part: schema.Application, role: strings.Repeat("x", 64), want: schema.ErrRole},
		{name: "NameWithLineEnd", part: schema.Relay, role: "app\nDROP TABLE x;", want: schema.ErrRole},
		{name: "NameNotUTF8", part: schema.Application, role: "\xff", want: schema.ErrRole},
		{name: "Everybody", part: schema.Application, role: "public", want: schema.ErrRole},
		{name: "Nobody", part: schema.Application, role: "none", want: schema.ErrRole},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			var sql strings.Builder

			err := schema.Grants(&sql, tt.schema, tt.part, tt.role)

			require.ErrorIs(t, err, tt.want)
			require.Empty(t, sql.String())
		})
	}
}

package schema_test

import (
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/schema"
)

// The vectors of the hashes, which Go computes too.
func TestHashFunctions(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.up(t)

	require.Equal(t, int32(855548666), query[int32](t, b, `SELECT semel.consumer_id('shipping')`))
	require.Equal(t, int64(6356007892172317635), query[int64](t, b, `SELECT semel.fingerprint('order.paid', '{"id":1}')`))
	require.Equal(t, query[int64](t, b, `SELECT semel.fingerprint('', '')`), query[int64](t, b, `SELECT semel.fingerprint(NULL, NULL)`))
	// the length before each part keeps these apart
	require.NotEqual(t, query[int64](t, b, `SELECT semel.fingerprint('ab', 'c')`), query[int64](t, b, `SELECT semel.fingerprint('a', 'bc')`))

	tests := []struct {
		name, id, want string
	}{
		{name: "Text", id: "evt_1", want: "130d007a-93ee-8789-b54c-e4978834551d"},
		{name: "UUID", id: "0191e2a0-0000-7abc-8000-0123456789ab", want: "0191e2a0-0000-7abc-8000-0123456789ab"},
		{name: "NilUUID", id: "00000000-0000-0000-0000-000000000000", want: "00000000-0000-0000-0000-000000000000"},
		{name: "Version8", id: "130d007a-93ee-8789-b54c-e4978834551d"},
		{name: "UpperCase", id: "0191E2A0-0000-7ABC-8000-0123456789AB"},
		{name: "Braces", id: "{0191e2a0-0000-7abc-8000-0123456789ab}"},
		{name: "NoHyphens", id: "0191e2a000007abc80000123456789ab"},
		{name: "TrailingNewline", id: "0191e2a0-0000-7abc-8000-0123456789ab\n"},
		{name: "Backslash", id: `\x00`},
		{name: "NotASCII", id: "é€"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := query[string](t, b, `SELECT semel.message_id($1)::text`, tt.id)

			if tt.want != "" {
				require.Equal(t, tt.want, got)
				return
			}
			require.NotEqual(t, tt.id, got)
			require.Regexp(t, `^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`, got)
		})
	}
}

// A user's search_path, or a function of the same name in it, changes nothing.
func TestFunctions_IgnoreTheSearchPath(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.up(t)
	b.exec(t, `CREATE FUNCTION semel.sha256(bytea) RETURNS bytea LANGUAGE sql AS $$ SELECT ''::bytea $$`)
	b.exec(t, `CREATE FUNCTION semel.convert_from(bytea, name) RETURNS text LANGUAGE sql AS $$ SELECT 'mine' $$`)
	tx, err := b.pool.Begin(t.Context())
	require.NoError(t, err)
	defer tx.Rollback(t.Context()) //nolint:errcheck // nothing hangs on it
	_, err = tx.Exec(t.Context(), `SELECT set_config('search_path', quote_ident($1) || ', pg_catalog', true)`, b.name)
	require.NoError(t, err)

	var id, text string
	require.NoError(t, tx.QueryRow(t.Context(), `SELECT message_id('evt_1')::text, as_text('a')`).Scan(&id, &text))

	require.Equal(t, "130d007a-93ee-8789-b54c-e4978834551d", id)
	require.Equal(t, "a", text)
}

// The order is worth 8 to 10 bytes a row.
func TestProcessedMessages_ColumnOrder(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.up(t)

	require.Equal(t, []string{"processed_at", "fingerprint", "message_id", "consumer_id", "outcome", "message_text"},
		query[[]string](t, b, `SELECT array_agg(attname::text ORDER BY attnum) FROM pg_attribute
			WHERE attnum > 0 AND attrelid = (SELECT oid FROM pg_class WHERE relname = 'processed_messages' AND relnamespace = to_regnamespace(quote_ident($1)))`, b.name))
}

func TestDeadLetters_Constraints(t *testing.T) {
	t.Parallel()

	const insert = `INSERT INTO semel.dead_letters (consumer_id, message_id, fingerprint, reason, state) VALUES `
	const first, second = `(1, '00000000-0000-0000-0000-000000000001', `, `(2, '00000000-0000-0000-0000-000000000001', `
	tests := []struct {
		name, sql, violates string
	}{
		{name: "AnotherConsumer", sql: first + `1, 'permanent', 'open'), ` + second + `1, 'permanent', 'open')`},
		{name: "AnotherPayload", sql: first + `1, 'permanent', 'open'), ` + first + `2, 'mismatch', 'open'), ` + first + `3, 'mismatch', 'open')`},
		{name: "SameMessage", sql: first + `1, 'permanent', 'open'), ` + first + `2, 'exhausted', 'open')`, violates: "dead_letters_consumer_id_message_id_idx"},
		{name: "SameMismatch", sql: first + `1, 'mismatch', 'open'), ` + first + `1, 'mismatch', 'open')`, violates: "dead_letters_consumer_id_message_id_fingerprint_idx"},
		{name: "MismatchOfNothing", sql: first + `NULL, 'mismatch', 'open')`, violates: "dead_letters_mismatch_check"},
		{name: "State", sql: first + `1, 'permanent', 'lost')`, violates: "dead_letters_state_check"},
	}
	b := setup(t)
	b.up(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b.exec(t, `TRUNCATE semel.dead_letters`)

			_, err := b.pool.Exec(t.Context(), schema.Qualify(insert+tt.sql, b.name))

			if tt.violates == "" {
				require.NoError(t, err)
				return
			}
			var pg *pgconn.PgError
			require.ErrorAs(t, err, &pg)
			require.Equal(t, tt.violates, pg.ConstraintName)
		})
	}
}

func TestViews(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.up(t)
	b.exec(t, `INSERT INTO semel.consumers (id, name) VALUES (semel.consumer_id('shipping'), 'shipping')`)
	b.exec(t, `INSERT INTO semel.processed_messages (consumer_id, message_id, outcome, message_text) VALUES
		(semel.consumer_id('shipping'), semel.message_id('evt_1'), 1, 'evt_1'),
		(7, '0191e2a0-0000-7abc-8000-0123456789ab', 5, NULL)`)
	b.exec(t, `INSERT INTO semel.dead_letters (consumer_id, message_id, reason, message_text, raw_id, payload) VALUES
		(semel.consumer_id('shipping'), semel.message_id('1'), 'permanent', 'evt_2', NULL, convert_to('{"é":1}', 'UTF8')),
		(7, semel.message_id('2'), 'bad_id', NULL, '\xff', '\xfffe'),
		(7, semel.message_id('3'), 'bad_id', '', NULL, NULL)`)

	require.Equal(t, []string{"consumer 7|0191e2a0-0000-7abc-8000-0123456789ab|dead", "shipping|evt_1|processed"},
		query[[]string](t, b, `SELECT array_agg(consumer || '|' || message || '|' || outcome ORDER BY consumer) FROM semel.processed`))
	require.Equal(t, []string{`shipping|evt_2|{"é":1}|8`, `consumer 7|\xff|none|2`, `consumer 7||none|none`},
		query[[]string](t, b, `SELECT array_agg(consumer || '|' || message || '|' || coalesce(payload, 'none') || '|' || coalesce(payload_bytes::text, 'none') ORDER BY id) FROM semel.dead`))
}

func TestOutcomeName(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.up(t)

	require.Equal(t, "processed,superseded,skipped,stored,dead,outcome 6",
		query[string](t, b, `SELECT string_agg(semel.outcome_name(n::smallint), ',' ORDER BY n) FROM generate_series(1, 6) AS n`))
}

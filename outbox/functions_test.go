package outbox_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/schema"
)

// columns are all of the rows in the order of seq, but for those that differ
// from event to event.
func (b *testBundle) columns(t *testing.T) []string {
	t.Helper()
	rows, err := b.Pool.Query(t.Context(), `SELECT (to_jsonb(o) - 'seq' - 'id' - 'created_at')::text FROM outbox AS o ORDER BY seq`)
	require.NoError(t, err)
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return all
}

// An event that outbox_write has written is the one that Write would have.
func TestFunctions_LikeWrite(t *testing.T) {
	t.Parallel()

	const all = `{"b": "1", "a é \" \\": "", "none": null, "yes": true, "n": 7, "traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
		"correlation-id": "corr", "causation-id": "cause", "source": "shop", "content-type": "text/plain", "occurred-at": "2026-03-01T13:00:00.123456+01:00"}`
	full := outbox.Event{
		AggregateType: "order", AggregateID: `42 "é" \ {,}`, Type: "OrderPaid", Version: 7, Payload: []byte("\x00\xff"),
		ContentType: "text/plain", CorrelationID: "corr", CausationID: "cause", Source: "shop",
		OccurredAt: time.Date(2026, 3, 1, 12, 0, 0, 123_456_000, time.UTC),
		Headers: handler.Headers{ // in the order of jsonb: by length, then by byte
			{Name: "b", Value: []byte("1")},
			{Name: "n", Value: []byte("7")},
			{Name: "yes", Value: []byte("true")},
			{Name: "none"},
			{Name: `a é " \`, Value: []byte{}},
			{Name: "traceparent", Value: []byte("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")},
		},
	}
	bare := outbox.Event{AggregateType: "order", AggregateID: "1", Type: "OrderSeen", Payload: []byte(`{"a": 1, "b": "é"}`), ContentType: "application/json"}
	tests := []struct {
		name  string
		event outbox.Event
		call  string
		args  []any
	}{
		{"Full", full, `outbox_write_bytes($1, $2, $3, $4, $5, version => 7)`, []any{"order", full.AggregateID, "OrderPaid", full.Payload, all}},
		{"Bare", bare, `outbox_write($1, $2, $3, $4)`, []any{"order", "1", "OrderSeen", `{"b":"é","a":1}`}},
		{"NoHeaders", bare, `outbox_write($1, $2, $3, $4, NULL, NULL, 0)`, []any{"order", "1", "OrderSeen", `{"b":"é","a":1}`}},
		{"BareBytes", outbox.Event{AggregateType: "order", AggregateID: "1", Type: "OrderSeen", Payload: []byte{}}, `outbox_write_bytes($1, $2, $3, '')`, []any{"order", "1", "OrderSeen"}},
		{"Tombstone", outbox.Event{AggregateType: "order", AggregateID: "1", Type: "OrderGone"}, `outbox_write($1, $2, $3, NULL)`, []any{"order", "1", "OrderGone"}},
		{"JSONNull", outbox.Event{AggregateType: "order", AggregateID: "1", Type: "OrderSeen", Payload: []byte("null"), ContentType: "application/json"}, `outbox_write($1, $2, $3, 'null')`, []any{"order", "1", "OrderSeen"}},
		{"Longest", outbox.Event{AggregateType: "order", AggregateID: strings.Repeat("x", 255), Type: "OrderSeen"}, `outbox_write($1, $2, $3, NULL)`, []any{"order", strings.Repeat("x", 255), "OrderSeen"}},
	}
	b := setup(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b.exec(t, `TRUNCATE semel.outbox`)
			b.write(t, tt.event)
			id := query[string](t, b, `SELECT semel.`+tt.call+`::text`, tt.args...)

			columns := b.columns(t)
			require.Len(t, columns, 2)
			require.JSONEq(t, columns[0], columns[1])
			require.Equal(t, id, b.rows(t)[1].ID)
			require.Regexp(t, `^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`, id)
		})
	}
	own := "0191e2a0-0000-4abc-8000-0123456789ab"
	require.Equal(t, own, query[string](t, b, `SELECT semel.outbox_write('order', '1', 'OrderSeen', '{}', id => $1)::text`, own))
}

// What Write refuses is refused, and a header that would say what a parameter
// says. No error shows the payload.
func TestFunctions_BadEvents(t *testing.T) {
	t.Parallel()

	long := strings.Repeat("é", 128)
	tests := []struct {
		name, aggregateType, aggregateID, eventType, headers, want, hint string
	}{
		{"NoAggregateID", "order", "", "OrderPaid", `{}`, "aggregate_id is empty", "consumers need it"},
		{"BlankAggregateType", " \t\u00a0\u2003\u3000", "1", "OrderPaid", `{}`, "aggregate_type is empty", "consumers need it"},
		{"NoType", "order", "1", "", `{}`, "event_type is empty", "consumers need it"},
		{"LongType", "order", "1", long, `{}`, "event_type has 256 bytes, at most 255 are allowed", "Shorten"},
		{"LongSource", "order", "1", "OrderPaid", `{"source": "` + long + `"}`, "header source has 256 bytes", "Shorten"},
		{"LongHeaderName", "order", "1", "OrderPaid", `{"` + long + `": ""}`, "the name of a header has 256 bytes", "Shorten"},
		{"EmptyHeaderName", "order", "1", "OrderPaid", `{"a": "", " ": ""}`, "the name of a header is empty", "consumers need it"},
		{"HeadersNoObject", "order", "1", "OrderPaid", `["a"]`, "headers is no JSON object", "{\"tenant\""},
		{"HeaderObject", "order", "1", "OrderPaid", `{"a": {"b": 1}}`, "header a is a JSON object", "give its text"},
		{"HeaderArray", "order", "1", "OrderPaid", `{"a b": []}`, `header "a b" is a JSON array`, "give its text"},
		{"MessageID", "order", "1", "OrderPaid", `{"message-id": "1"}`, `header "message-id" is not for the writer to set`, "parameter id"},
		{"MessageVersion", "order", "1", "OrderPaid", `{"message-version": "1"}`, `header "message-version" is not for the writer to set`, "parameter version"},
		{"PublishAttempt", "order", "1", "OrderPaid", `{"publish-attempt": "1"}`, `header "publish-attempt" is not for the writer to set`, "The relay counts"},
		{"OtherLetters", "order", "1", "OrderPaid", `{"Content-Type": "text/plain"}`, `header "Content-Type" is one of ours in other letters`, "Write content-type."},
		{"Time", "order", "1", "OrderPaid", `{"occurred-at": "yesterday"}`, `header "occurred-at" is no time`, "RFC 3339"},
		{"TimeWithoutZone", "order", "1", "OrderPaid", `{"occurred-at": "2026-03-01T12:00:00"}`, `header "occurred-at" is no time`, "RFC 3339"},
		{"Month", "order", "1", "OrderPaid", `{"occurred-at": "2026-13-01T12:00:00Z"}`, `header "occurred-at" is no time`, "RFC 3339"},
	}
	b := setup(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, function := range []string{"outbox_write", "outbox_write_bytes"} {
				_, err := b.Pool.Exec(t.Context(), `SELECT `+function+`($1, $2, $3, '"secret"', $4)`, tt.aggregateType, tt.aggregateID, tt.eventType, tt.headers)

				requireRefused(t, err, tt.want, tt.hint)
			}
		})
	}
	_, err := b.Pool.Exec(t.Context(), `SELECT outbox_write_bytes('order', NULL, 'OrderPaid', '')`)
	requireRefused(t, err, "aggregate_id is empty", "consumers need it")
	_, err = b.Pool.Exec(t.Context(), `SELECT outbox_write_bytes('order', '1', 'OrderPaid', $1)`, make([]byte, outbox.MaxPayload+1))
	requireRefused(t, err, "the payload has 16777217 bytes, at most 16777216 are allowed", "Put it elsewhere")
	require.Empty(t, b.rows(t))
	_, err = b.Pool.Exec(t.Context(), `SELECT outbox_write_bytes('order', '1', 'OrderPaid', $1)`, make([]byte, outbox.MaxPayload))
	require.NoError(t, err)
}

func requireRefused(t *testing.T, err error, want, hint string) {
	t.Helper()
	var refused *pgconn.PgError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, "22023", refused.Code)
	require.Contains(t, refused.Message, "unusable event: "+want)
	require.Contains(t, refused.Hint, hint)
	require.NotContains(t, refused.Message+refused.Detail+refused.Hint, "secret")
}

// A writer waits for the one before it of the same aggregate, in whatever
// language: only then is its number drawn.
func TestFunctions_WaitForTheAggregate(t *testing.T) {
	t.Parallel()

	bySQL := `SELECT semel.outbox_write('order', 'a "é"', 'OrderPaid', '{}', version => $1)`
	lockSQL := `SELECT semel.outbox_lock('order', 'a "é"')`
	tests := []struct{ name, first, second string }{
		{"WriteWrite", bySQL, bySQL},
		{"LockWrite", lockSQL, bySQL},
		{"GoWrite", "", bySQL},
		{"WriteGo", bySQL, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			b := setup(t)
			enter := func(tx pgx.Tx, sql string, version int64) error {
				if sql == "" {
					if err := outbox.Lock(t.Context(), tx, "order", `a "é"`); err != nil {
						return err
					}
					return b.writer.Write(t.Context(), tx, order(`a "é"`, version))
				}
				_, err := tx.Exec(t.Context(), schema.Qualify(sql, b.Schema), argsOf(sql, version)...)
				return err
			}
			first, second, other := b.begin(t), b.begin(t), b.begin(t)
			require.NoError(t, enter(first, tt.first, 1))
			pid := second.Conn().PgConn().PID()
			entered := make(chan error, 1)
			go func() { entered <- enter(second, tt.second, 2) }()
			require.Eventually(t, func() bool {
				return query[bool](t, b, `SELECT EXISTS (SELECT FROM pg_locks WHERE pid = $1 AND locktype = 'advisory' AND NOT granted)`, pid)
			}, deadline, tick)
			_, err := other.Exec(t.Context(), schema.Qualify(`SELECT semel.outbox_write('order', 'b', 'OrderPaid', '{}')`, b.Schema))
			require.NoError(t, err, "another aggregate is free")
			require.NoError(t, other.Rollback(t.Context()))

			require.NoError(t, first.Commit(t.Context()))
			require.NoError(t, <-entered)
			require.NoError(t, second.Commit(t.Context()))

			versions := query[[]int64](t, b, `SELECT array_agg(version ORDER BY seq) FROM semel.outbox`)
			require.Equal(t, int64(2), versions[len(versions)-1])
		})
	}
}

func argsOf(sql string, version int64) []any {
	if strings.Contains(sql, "$1") {
		return []any{version}
	}
	return nil
}

// Many writers of few aggregates, half in SQL and half in Go, each reading what
// the one before it wrote: the relay publishes them as they were written.
func TestFunctions_KeepOrderBesideGo(t *testing.T) {
	t.Parallel()

	b := setup(t)
	p := &recorder{ordered: true}
	b.relay(t, p, quick())
	const writers, rounds, aggregates = 6, 20, 3
	write := func(w, round int) error {
		id := fmt.Sprint((w + round) % aggregates)
		return pgx.BeginFunc(t.Context(), b.Pool, func(tx pgx.Tx) error {
			lock := func() error {
				if w%2 == 0 {
					return outbox.Lock(t.Context(), tx, "order", id)
				}
				_, err := tx.Exec(t.Context(), `SELECT outbox_lock('order', $1)`, id)
				return err
			}
			if err := lock(); err != nil {
				return err
			}
			var version int64
			if err := tx.QueryRow(t.Context(), `SELECT count(*) + 1 FROM outbox WHERE aggregateid = $1`, id).Scan(&version); err != nil {
				return err
			}
			if w%2 == 0 {
				return b.writer.Write(t.Context(), tx, order(id, version))
			}
			_, err := tx.Exec(t.Context(), `SELECT outbox_write('order', $1, 'OrderPaid', '{}', version => $2)`, id, version)
			return err
		})
	}
	failed := make(chan error, writers)
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for round := range rounds {
				if err := write(w, round); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	wg.Wait()
	close(failed)
	for err := range failed {
		require.NoError(t, err)
	}

	b.awaitPublished(t, writers*rounds)
	requireOrder(t, p.messages(), writers*rounds)
}

// Ids rise as time does, also within a millisecond, and none comes twice.
func TestFunctions_NewID(t *testing.T) {
	t.Parallel()

	b := setup(t)
	rows, err := b.Pool.Query(t.Context(), `SELECT outbox_new_id()::text FROM generate_series(1, 10000) AS n ORDER BY n`)
	require.NoError(t, err)
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)

	const timed = len("0191e2a0-0000-7abc") // what follows is random
	seen, moments := map[string]bool{}, map[string]bool{}
	last := ""
	for _, id := range ids {
		require.LessOrEqual(t, last, id[:timed])
		last = id[:timed]
		seen[id], moments[last] = true, true
	}
	require.Len(t, seen, len(ids))
	require.Greater(t, len(moments), 1000, "a millisecond has more than one")
	require.True(t, query[bool](t, b, `SELECT at BETWEEN trunc(extract(epoch FROM before) * 1000) AND extract(epoch FROM after) * 1000 FROM (
		SELECT clock_timestamp() AS before, ('x' || left(replace(outbox_new_id()::text, '-', ''), 12))::bit(48)::bigint AS at, clock_timestamp() AS after) AS o`))
}

// Who may write may do so with the functions, and nothing else: they run with the
// rights of their caller. What stands in the caller's search path changes nothing.
func TestFunctions_AsWriter(t *testing.T) {
	t.Parallel()

	b := setup(t)
	for _, part := range []schema.Role{schema.Application, schema.Writer} {
		writer := b.asPart(t, part)
		_, err := writer.Exec(t.Context(), `SELECT outbox_lock('order', '1'), outbox_write('order', '1', 'OrderPaid', '{}'), outbox_write_bytes('order', '1', 'OrderPaid', '')`)
		require.NoError(t, err)
		_, err = writer.Exec(t.Context(), `SELECT * FROM outbox`)
		require.ErrorContains(t, err, "permission denied")
	}
	_, err := b.asPart(t, schema.Operator).Exec(t.Context(), `SELECT outbox_write('order', '1', 'OrderPaid', '{}')`)
	require.ErrorContains(t, err, "permission denied")
	writer := b.asPart(t, schema.Writer)
	require.NoError(t, pgx.BeginFunc(t.Context(), writer, func(tx pgx.Tx) error { return b.writer.Write(t.Context(), tx, order("2", 1)) }))
	_, err = writer.Exec(t.Context(), `DELETE FROM outbox`)
	require.ErrorContains(t, err, "permission denied")
	_, err = writer.Exec(t.Context(), `SELECT FROM processed_messages`)
	require.ErrorContains(t, err, "permission denied")

	tx := b.begin(t)
	for _, sql := range []string{
		`CREATE FUNCTION pg_temp.jsonb_typeof(jsonb) RETURNS text LANGUAGE sql RETURN 'mine'`,
		`CREATE FUNCTION semel.octet_length(bytea) RETURNS int LANGUAGE sql RETURN 999`,
		`SELECT set_config('search_path', quote_ident('` + b.Schema + `') || ', pg_temp, pg_catalog', true)`,
		`SELECT semel.outbox_write('order', '3', 'OrderPaid', '{}', '{"a": "b"}')`,
	} {
		_, err := tx.Exec(t.Context(), schema.Qualify(sql, b.Schema))
		require.NoError(t, err, sql)
	}
}

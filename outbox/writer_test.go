package outbox_test

import (
	"context"
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/outbox"
)

// writers are the doors to the outbox.
func writers() map[string]func(t *testing.T, b *testBundle, ctx context.Context, events ...outbox.Event) error {
	return map[string]func(t *testing.T, b *testBundle, ctx context.Context, events ...outbox.Event) error{
		"Pgx": func(t *testing.T, b *testBundle, ctx context.Context, events ...outbox.Event) error {
			t.Helper()
			return pgx.BeginFunc(ctx, b.Pool, func(tx pgx.Tx) error { return b.writer.Write(ctx, tx, events...) })
		},
		"SQL": func(t *testing.T, b *testBundle, ctx context.Context, events ...outbox.Event) error {
			t.Helper()
			db := stdlib.OpenDBFromPool(b.Pool)
			defer func() { require.NoError(t, db.Close()) }()
			return inSQL(ctx, db, func(tx *sql.Tx) error { return b.writer.WriteSQL(ctx, tx, events...) })
		},
	}
}

func inSQL(ctx context.Context, db *sql.DB, f func(*sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if err := f(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// stored is a row as it lies in the table.
type stored struct {
	ID, AggregateType, AggregateID, Type              string
	Version                                           *int64
	Payload                                           []byte
	ContentType, Correlation, Causation, Source, Tags *string
	OccurredAt                                        *time.Time
	HeaderNames                                       []string
	HeaderValues                                      [][]byte
}

func (b *testBundle) rows(t *testing.T) []stored {
	t.Helper()
	rows, err := b.Pool.Query(t.Context(), `SELECT id::text, aggregatetype, aggregateid, type, version, payload, content_type,
		correlation_id, causation_id, source, header_tags, occurred_at, header_names, header_values FROM outbox ORDER BY seq`)
	require.NoError(t, err)
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[stored])
	require.NoError(t, err)
	return all
}

func text(s string) *string { return &s }

func TestWrite(t *testing.T) {
	t.Parallel()

	at := time.Date(2026, 3, 1, 12, 0, 0, 123_456_000, time.UTC)
	version := int64(7)
	full := outbox.Event{
		ID: "0191e2a0-0000-7abc-8000-0123456789ab", AggregateType: "order", AggregateID: `42 "é" \ {,}`, Type: "OrderPaid", Version: 7,
		Payload: []byte("\x00\xff{}"), ContentType: "application/json", OccurredAt: at,
		CorrelationID: "corr", CausationID: "cause", Source: "shop",
		Headers: handler.Headers{
			{Name: `quote " back \ comma , é`, Value: []byte("\x00\x01")}, {Name: "none"}, {Name: "empty", Value: []byte{}, Tag: 'S'},
		},
	}
	bare := outbox.Event{AggregateType: "order", AggregateID: "1", Type: "OrderSeen"}
	empty := outbox.Event{AggregateType: "order", AggregateID: "2", Type: "OrderSeen", Payload: []byte{}}
	for name, write := range writers() {
		for _, batch := range []string{"Alone", "Together"} {
			t.Run(name+batch, func(t *testing.T) {
				t.Parallel()

				b := setup(t)
				if batch == "Alone" {
					for _, e := range []outbox.Event{full, bare, empty} {
						require.NoError(t, write(t, b, t.Context(), e))
					}
				} else {
					require.NoError(t, write(t, b, t.Context(), full, bare, empty))
				}

				rows := b.rows(t)
				require.Len(t, rows, 3)
				require.Equal(t, at, rows[0].OccurredAt.UTC())
				rows[0].OccurredAt = nil
				require.Equal(t, stored{
					ID: full.ID, AggregateType: "order", AggregateID: full.AggregateID, Type: "OrderPaid", Version: &version,
					Payload: full.Payload, ContentType: text("application/json"),
					Correlation: text("corr"), Causation: text("cause"), Source: text("shop"), Tags: text("--S"),
					HeaderNames:  []string{`quote " back \ comma , é`, "none", "empty"},
					HeaderValues: [][]byte{{0, 1}, nil, {}},
				}, rows[0])
				require.Regexp(t, `^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`, rows[1].ID)
				require.Less(t, rows[1].ID, rows[2].ID)
				rows[1].ID, rows[2].ID = "", ""
				require.Equal(t, stored{AggregateType: "order", AggregateID: "1", Type: "OrderSeen"}, rows[1])
				require.Equal(t, stored{AggregateType: "order", AggregateID: "2", Type: "OrderSeen", Payload: []byte{}}, rows[2])
			})
		}
	}
}

// What was rolled back never happened.
func TestWrite_RolledBack(t *testing.T) {
	t.Parallel()

	b := setup(t)
	tx := b.begin(t)
	require.NoError(t, b.writer.Write(t.Context(), tx, order("1", 1), order("1", 2)))
	require.NoError(t, tx.Rollback(t.Context()))

	require.Empty(t, b.rows(t))
}

func TestWrite_Nothing(t *testing.T) {
	t.Parallel()

	b := setup(t)
	for name, write := range writers() {
		require.NoError(t, write(t, b, t.Context()), name)
	}
	require.Empty(t, b.rows(t))
}

// Events are numbered as they are given, however many they are.
func TestWrite_KeepsOrder(t *testing.T) {
	t.Parallel()

	b := setup(t)
	var events []outbox.Event
	for i := range int64(500) {
		events = append(events, order("1", i+1))
	}
	b.write(t, events...)

	require.Equal(t, int64(0), query[int64](t, b, `SELECT count(*) FROM (
		SELECT version, lag(version, 1, 0::bigint) OVER (ORDER BY seq) AS before FROM semel.outbox) AS o WHERE version <> before + 1`))
}

func TestWrite_BadEvents(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name   string
		change func(*outbox.Event)
		want   string
	}{
		{"NoAggregateID", func(e *outbox.Event) { e.AggregateID = "" }, "AggregateID is empty"},
		{"BlankAggregateType", func(e *outbox.Event) { e.AggregateType = " \t" }, "AggregateType is empty"},
		{"NoType", func(e *outbox.Event) { e.Type = "" }, "Type is empty"},
		{"LongType", func(e *outbox.Event) { e.Type = strings.Repeat("x", 300) }, "Type has 300 bytes, at most 255"},
		{"NUL", func(e *outbox.Event) { e.AggregateID = "a\x00b" }, `AggregateID "a\x00b" is not UTF-8 without NUL`},
		{"NotUTF8", func(e *outbox.Event) { e.Source = "\xff" }, `Source "\xff" is not UTF-8`},
		{"ID", func(e *outbox.Event) { e.ID = "evt_1" }, `ID "evt_1" is no UUID`},
		{"UpperCaseID", func(e *outbox.Event) { e.ID = "0191E2A0-0000-7ABC-8000-0123456789AB" }, "is no UUID in canonical lower case"},
		{"HeaderName", func(e *outbox.Event) { e.Headers = handler.Headers{{Name: "a"}, {}} }, "name of header 2 is empty"},
		{"Payload", func(e *outbox.Event) { e.Payload = make([]byte, outbox.MaxPayload+1) }, "payload has 16777217 bytes"},
		{"Year", func(e *outbox.Event) { e.OccurredAt = time.Date(12026, 1, 1, 0, 0, 0, 0, time.UTC) }, "OccurredAt is in the year 12026"},
	}
	b := setup(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := order("1", 1)
			e.Payload = []byte("secret")
			tt.change(&e)
			for name, write := range writers() {
				err := write(t, b, t.Context(), order("1", 1), e)

				require.ErrorIs(t, err, outbox.ErrBadEvent, name)
				require.ErrorContains(t, err, tt.want)
				require.ErrorContains(t, err, "event 2 of 2")
				require.NotContains(t, err.Error(), "secret")
			}
		})
	}
	require.Empty(t, b.rows(t))
}

// Written in a handler, an event says by itself what caused it.
func TestWrite_InHandler(t *testing.T) {
	t.Parallel()

	const trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	in := func(msg *handler.Message) context.Context {
		return handler.WithCause(t.Context(), &handler.Cause{Consumer: "shipping", Message: msg})
	}
	b := setup(t)
	write := func(ctx context.Context, e outbox.Event) stored {
		t.Helper()
		b.exec(t, `TRUNCATE semel.outbox`)
		require.NoError(t, pgx.BeginFunc(ctx, b.Pool, func(tx pgx.Tx) error { return b.writer.Write(ctx, tx, e) }))
		return b.rows(t)[0]
	}

	got := write(in(&handler.Message{ID: "evt_1", Headers: handler.Headers{
		{Name: "traceparent", Value: []byte(trace)}, {Name: "tracestate", Value: []byte("a=b")}, {Name: "other", Value: []byte("x")},
	}}), order("1", 1))
	require.Equal(t, text("evt_1"), got.Causation)
	require.Equal(t, text("evt_1"), got.Correlation, "the message began the conversation")
	require.Equal(t, text("shipping"), got.Source)
	require.Equal(t, []string{"traceparent", "tracestate"}, got.HeaderNames)
	require.Equal(t, [][]byte{[]byte(trace), []byte("a=b")}, got.HeaderValues)

	got = write(in(&handler.Message{ID: "evt_1", CorrelationID: "conversation"}), order("1", 1))
	require.Equal(t, text("conversation"), got.Correlation)

	said := order("1", 1)
	said.CorrelationID, said.CausationID, said.Source = "a", "b", "c"
	said.Headers = handler.Headers{{Name: "traceparent", Value: []byte("mine")}}
	got = write(in(&handler.Message{ID: "evt_1", Headers: handler.Headers{{Name: "traceparent", Value: []byte(trace)}}}), said)
	require.Equal(t, []*string{text("a"), text("b"), text("c")}, []*string{got.Correlation, got.Causation, got.Source})
	require.Equal(t, [][]byte{[]byte("mine")}, got.HeaderValues)

	got = write(in(&handler.Message{ID: "\xff"}), order("1", 1))
	require.Nil(t, got.Causation, "an id that is no text keeps nobody from writing")
}

// Writers that only insert are held apart by Lock, and only those of one aggregate.
func TestLock(t *testing.T) {
	t.Parallel()

	b := setup(t)
	first, second := b.begin(t), b.begin(t)
	require.NoError(t, outbox.Lock(t.Context(), first, "order", "1"))
	require.NoError(t, outbox.Lock(t.Context(), first, "order", "1"), "again in the same transaction")
	require.NoError(t, outbox.Lock(t.Context(), second, "order", "2"))
	require.NoError(t, outbox.Lock(t.Context(), second, "orde", "r1"))

	_, err := second.Exec(t.Context(), "SET LOCAL lock_timeout = '50ms'")
	require.NoError(t, err)
	require.ErrorContains(t, outbox.Lock(t.Context(), second, "order", "1"), `lock aggregate "1" of type "order"`)
	require.NoError(t, second.Rollback(t.Context()))

	db := stdlib.OpenDBFromPool(b.Pool)
	defer func() { require.NoError(t, db.Close()) }()
	got := make(chan error, 1)
	go func() {
		got <- inSQL(t.Context(), db, func(tx *sql.Tx) error { return outbox.LockSQL(t.Context(), tx, "order", "1") })
	}()
	require.Eventually(t, func() bool {
		return query[int](t, b, `SELECT count(*)::int FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`) > 0
	}, deadline, 10*time.Millisecond)
	require.NoError(t, first.Rollback(t.Context()))
	require.NoError(t, <-got)
}

func TestNewID(t *testing.T) {
	t.Parallel()

	last := ""
	for range 10_000 {
		id := outbox.NewID()
		require.Less(t, last, id)
		last = id
	}
}

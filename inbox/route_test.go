package inbox_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/schema"
)

const route = "shipping.dead"

// hopeless is a handler that nothing can help.
func hopeless(context.Context, pgx.Tx, *handler.Message) error {
	return handler.Permanent(errors.New("no such warehouse"))
}

// toldOf are the events of dead letters, oldest first.
func (b *testBundle) toldOf(t *testing.T) []outbox.Record {
	t.Helper()
	store := outbox.NewStore(b.Schema)
	rows, err := b.Pool.Query(t.Context(), `SELECT id::text FROM outbox WHERE aggregatetype = $1 ORDER BY seq`, route)
	require.NoError(t, err)
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	var events []outbox.Record
	for _, id := range ids {
		event, err := store.Load(t.Context(), b.Pool, id)
		require.NoError(t, err)
		events = append(events, *event)
	}
	return events
}

// says is the text of a header, "-" where there is none.
func says(e outbox.Record, header string) string {
	value, ok := e.Headers.First(header)
	if !ok {
		return "-"
	}
	return string(value)
}

// A dead letter and its event are in one transaction. The event is the message
// as it came, under an id of its own, with how it died.
func TestRoute(t *testing.T) {
	t.Parallel()

	b := setup(t)
	in := b.inbox(t, hopeless, inbox.Config{DeadLetterRoute: route})
	happened := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	msg := &handler.Message{
		ID: "evt_1", Type: "invoice", Key: []byte("customer-7"), Version: 3, CorrelationID: "corr-1", CausationID: "cause-1",
		Source: "erp", ContentType: "application/json", OccurredAt: happened, Payload: []byte("\x00\xffraw"),
		Headers: handler.Headers{{Name: "h", Value: nil}, {Name: "h", Value: []byte{0, 255}, Tag: 'x'}, {Name: outbox.HeaderAttempt, Value: []byte("2")}},
		Origin:  handler.Origin{Transport: "kafka", Topic: "orders", Partition: 3, Offset: 42, Position: "t/3/42"},
	}

	outcome, err := in.Process(t.Context(), msg)
	require.NoError(t, err)
	require.Equal(t, handler.Dead, outcome)
	outcome, err = in.Process(t.Context(), msg) // a redelivery
	require.NoError(t, err)
	require.Equal(t, handler.Duplicate, outcome)

	letter := b.letters(t)[0]
	events := b.toldOf(t)
	require.Len(t, events, 1)
	e := events[0]
	first, last := letter.FirstFailedAt.UTC(), letter.LastFailedAt.UTC()
	require.Equal(t, outbox.Event{
		ID: e.ID, AggregateType: route, AggregateID: "customer-7", Type: "invoice", Version: 3, CorrelationID: "corr-1", CausationID: "cause-1",
		Source: "erp", ContentType: "application/json", OccurredAt: happened, Payload: msg.Payload, Headers: e.Headers,
	}, e.Event)
	require.Equal(t, msg.Headers[:2], e.Headers[:2])
	for header, want := range map[string]string{
		outbox.HeaderAttempt: "-", dlq.HeaderOriginalID: "evt_1", dlq.HeaderOriginalTopic: "orders",
		dlq.HeaderOriginalPartition: "3", dlq.HeaderOriginalOffset: "42", dlq.HeaderOriginalKey: "-", dlq.HeaderOriginalType: "-",
		dlq.HeaderConsumer: "shipping", dlq.HeaderReason: "permanent", dlq.HeaderAttempts: "1", dlq.HeaderError: "no such warehouse", dlq.HeaderAltered: "-",
	} {
		require.Equal(t, want, says(e, header), header)
	}
	for header, want := range map[string]time.Time{dlq.HeaderFirstFailure: first, dlq.HeaderLastFailure: last} {
		at, err := time.Parse(time.RFC3339Nano, says(e, header))
		require.NoError(t, err)
		require.WithinDuration(t, want, at, time.Microsecond)
	}
}

// Without a route nothing is written to the outbox, which need not be there.
func TestRoute_Off(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.exec(t, `ALTER TABLE outbox RENAME TO elsewhere`)
	outcome, err := b.inbox(t, hopeless, inbox.Config{}).Process(t.Context(), message("evt_1"))

	require.NoError(t, err)
	require.Equal(t, handler.Dead, outcome)
}

// Whatever kills a message, there is one event; what only counts a copy of a
// letter tells nobody again.
func TestRoute_EachDeath(t *testing.T) {
	t.Parallel()

	other := message("evt_1")
	other.Payload = []byte(`{"id":2}`)
	tests := []struct {
		name   string
		cfg    inbox.Config
		h      handler.Func
		msgs   []*handler.Message // the last of them dies
		reason dlq.Reason
		text   string
	}{
		{name: "Permanent", h: hopeless, msgs: []*handler.Message{message("evt_1")}, reason: dlq.Permanent, text: "no such warehouse"},
		{
			name: "Exhausted", h: func(context.Context, pgx.Tx, *handler.Message) error { return errors.New("no stock") },
			msgs: []*handler.Message{message("evt_1")}, reason: dlq.Exhausted, text: "no stock",
		},
		{name: "BadID", h: effect, msgs: []*handler.Message{message("")}, reason: dlq.BadID, text: "message has no usable id"},
		{name: "TooLarge", h: effect, cfg: inbox.Config{MaxPayload: 3}, msgs: []*handler.Message{message("evt_1")}, reason: dlq.TooLarge, text: "limit 3"},
		{name: "UnknownType", h: handler.Mux(map[string]handler.Func{}, nil), msgs: []*handler.Message{message("evt_1")}, reason: dlq.UnknownType, text: "order.paid"},
		{name: "TooOld", h: effect, msgs: []*handler.Message{old("evt_1", 20*day)}, reason: dlq.TooOld, text: inbox.ErrTooOld.Error()},
		{name: "Mismatch", h: effect, msgs: []*handler.Message{message("evt_1"), other}, reason: dlq.Mismatch, text: "another payload"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			b := setup(t)
			tt.cfg.DeadLetterRoute = route
			in := b.inbox(t, tt.h, tt.cfg)
			b.purged(t, "14 days")
			dead := tt.msgs[len(tt.msgs)-1]
			for _, msg := range append(tt.msgs, dead, dead) { // two copies more
				_, err := in.Process(t.Context(), msg)
				require.NoError(t, err)
			}

			require.Len(t, b.letters(t), 1)
			events := b.toldOf(t)
			require.Len(t, events, 1)
			require.Equal(t, string(tt.reason), says(events[0], dlq.HeaderReason))
			require.Contains(t, says(events[0], dlq.HeaderError), tt.text)
			require.Equal(t, dead.Payload, events[0].Payload)
		})
	}
}

// A replay that fails is a death of its own: whoever replays what the broker
// tells must be told again. It says when the message failed first, and all its
// attempts.
func TestRoute_FailedReplay(t *testing.T) {
	t.Parallel()

	b := setup(t)
	var r refusing
	in := b.inbox(t, r.handle, inbox.Config{DeadLetterRoute: route})
	other := message("evt_0")
	other.Payload = []byte("another")
	r.mended.Store(true)
	for _, msg := range []*handler.Message{message("evt_0"), other} {
		_, err := in.Process(t.Context(), msg)
		require.NoError(t, err)
	}
	r.mended.Store(false)
	_, err := in.Process(t.Context(), message("evt_1"))
	require.NoError(t, err)
	letters := b.letters(t)
	require.Equal(t, []dlq.Reason{dlq.Mismatch, dlq.Permanent}, []dlq.Reason{letters[0].Reason, letters[1].Reason})

	for _, letter := range letters {
		outcome, err := in.Replay(t.Context(), letter.ID)
		require.NoError(t, err)
		require.Equal(t, handler.Dead, outcome)
	}
	r.mended.Store(true)
	for _, letter := range letters {
		outcome, err := in.Replay(t.Context(), letter.ID)
		require.NoError(t, err)
		require.Equal(t, handler.Processed, outcome)
	}

	events := b.toldOf(t)
	require.Len(t, events, 4, "two deaths, two failed replays; success tells nothing")
	for i, again := range events[2:] {
		before := events[i]
		require.NotEqual(t, before.ID, again.ID)
		require.Equal(t, before.Payload, again.Payload)
		for _, header := range []string{dlq.HeaderOriginalID, dlq.HeaderReason, dlq.HeaderFirstFailure} {
			require.Equal(t, says(before, header), says(again, header), header)
		}
		require.NotEqual(t, says(before, dlq.HeaderLastFailure), says(again, dlq.HeaderLastFailure))
		require.Equal(t, "unknown product", says(again, dlq.HeaderError))
	}
	require.Equal(t, "0", says(events[0], dlq.HeaderAttempts))
	require.Equal(t, "1", says(events[2], dlq.HeaderAttempts))
	require.Equal(t, "2", says(events[3], dlq.HeaderAttempts))
}

// What a message holds never keeps it from the dead letters: what an event cannot
// carry is kept in a header, or left out, and the event says so.
func TestRoute_WhatAnEventCannotCarry(t *testing.T) {
	t.Parallel()

	long := strings.Repeat("x", 300)
	tests := []struct {
		name    string
		change  func(*handler.Message)
		id      string            // the aggregate's; "": a UUID
		headers map[string]string // among others
	}{
		{name: "Key", change: func(m *handler.Message) { m.Key = []byte("k") }, id: "k", headers: map[string]string{dlq.HeaderOriginalKey: "-"}},
		{name: "NoKey", change: func(*handler.Message) {}, id: "evt_1", headers: map[string]string{dlq.HeaderOriginalKey: ""}},
		{
			name: "NoKeyAndLongestID", change: func(m *handler.Message) { m.ID = long[:255] }, id: long[:255],
			headers: map[string]string{dlq.HeaderOriginalID: long[:255]},
		},
		{
			name: "NoKeyAndUnusableID", change: func(m *handler.Message) { m.ID = "\xff\x00" },
			headers: map[string]string{dlq.HeaderOriginalID: "\xff\x00", dlq.HeaderOriginalKey: ""},
		},
		{name: "NoKeyAndNoID", change: func(m *handler.Message) { m.ID = "" }, headers: map[string]string{dlq.HeaderOriginalID: "-"}},
		{name: "BinaryKey", change: func(m *handler.Message) { m.Key = []byte("\xff\x00\x01") }, headers: map[string]string{dlq.HeaderOriginalKey: "\xff\x00\x01"}},
		{name: "BlankKey", change: func(m *handler.Message) { m.Key = []byte("  ") }, headers: map[string]string{dlq.HeaderOriginalKey: "  "}},
		{name: "LongKey", change: func(m *handler.Message) { m.Key = []byte(long) }, headers: map[string]string{dlq.HeaderOriginalKey: long}},
		{name: "NoType", change: func(m *handler.Message) { m.Type = "" }, id: "evt_1", headers: map[string]string{dlq.HeaderOriginalType: ""}},
		{name: "LongType", change: func(m *handler.Message) { m.Type = long }, id: "evt_1", headers: map[string]string{dlq.HeaderOriginalType: long}},
		{
			name: "UnusableFields", change: func(m *handler.Message) {
				m.CorrelationID, m.CausationID, m.Source, m.ContentType, m.OccurredAt = "\xff", long, "\x00", long, time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)
			}, id: "evt_1", headers: map[string]string{dlq.HeaderAltered: "-"},
		},
		{
			name: "HeaderNames", change: func(m *handler.Message) {
				m.Headers = handler.Headers{{Name: ""}, {Name: long}, {Name: "\xff"}, {Name: "a\x00"}, {Name: "good", Value: []byte("\xff\x00")}}
			}, id: "evt_1", headers: map[string]string{"good": "\xff\x00", dlq.HeaderAltered: "4 headers left out: their names are empty, no text, or over 255 bytes"},
		},
		{
			name: "Payload", change: func(m *handler.Message) { m.Payload = make([]byte, outbox.MaxPayload+1) }, id: "evt_1",
			headers: map[string]string{dlq.HeaderReason: "too_large", dlq.HeaderAltered: "payload of 16777217 bytes left out: an event holds at most 16777216"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			b := setup(t)
			in := b.inbox(t, hopeless, inbox.Config{DeadLetterRoute: route})
			msg := message("evt_1")
			tt.change(msg)

			outcome, err := in.Process(t.Context(), msg)

			require.NoError(t, err)
			require.Equal(t, handler.Dead, outcome)
			letter := b.letters(t)[0]
			letter.Message.OccurredAt = msg.OccurredAt // which the database may not hold either
			require.Equal(t, msg, letter.Message, "the letter is whole")
			events := b.toldOf(t)
			require.Len(t, events, 1)
			if tt.id == "" {
				require.NoError(t, uuid.Validate(events[0].AggregateID))
			} else {
				require.Equal(t, tt.id, events[0].AggregateID)
			}
			for header, want := range tt.headers {
				require.Equal(t, want, says(events[0], header), header)
			}
			if len(msg.Payload) > outbox.MaxPayload {
				require.Equal(t, []byte{}, events[0].Payload, "no tombstone")
			} else {
				require.Equal(t, msg.Payload, events[0].Payload)
			}
		})
	}
}

// Two messages of one key that is no text are one aggregate: they keep their order.
func TestRoute_BinaryKeyIsOneAggregate(t *testing.T) {
	t.Parallel()

	b := setup(t)
	in := b.inbox(t, hopeless, inbox.Config{DeadLetterRoute: route})
	for id, key := range map[string]string{"evt_1": "\xff", "evt_2": "\xff", "evt_3": "\xfe"} {
		msg := message(id)
		msg.Key = []byte(key)
		_, err := in.Process(t.Context(), msg)
		require.NoError(t, err)
	}

	aggregates := map[string]string{}
	for _, e := range b.toldOf(t) {
		aggregates[says(e, dlq.HeaderOriginalID)] = e.AggregateID
	}
	require.Equal(t, aggregates["evt_1"], aggregates["evt_2"])
	require.NotEqual(t, aggregates["evt_1"], aggregates["evt_3"])
}

// What the database refuses in the outbox it may take among the dead letters.
// Then the letter is whole, and the event tells less.
func TestRoute_RefusedInPart(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.exec(t, `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF 'odd' = ANY (NEW.header_names) THEN RAISE 'odd' USING ERRCODE = 'data_exception'; END IF; RETURN NEW; END $$`)
	b.exec(t, `CREATE TRIGGER refuse BEFORE INSERT ON outbox FOR EACH ROW EXECUTE FUNCTION refuse()`)
	in := b.inbox(t, hopeless, inbox.Config{DeadLetterRoute: route})
	msg := message("evt_1")
	msg.Headers = handler.Headers{{Name: "odd", Value: []byte("x")}}

	outcome, err := in.Process(t.Context(), msg)
	require.NoError(t, err)
	require.Equal(t, handler.Dead, outcome)
	_, err = in.Replay(t.Context(), b.letters(t)[0].ID)
	require.NoError(t, err)

	letters := b.letters(t)
	require.Len(t, letters, 1)
	require.Equal(t, msg, letters[0].Message, "the letter is whole")
	require.NotContains(t, strings.Join(letters[0].Errors, ""), "odd")
	events := b.toldOf(t)
	require.Len(t, events, 2)
	for _, e := range events {
		require.Empty(t, e.Payload)
		require.Equal(t, "-", says(e, "odd"))
		require.Equal(t, "evt_1", says(e, dlq.HeaderOriginalID))
		require.Contains(t, says(e, dlq.HeaderAltered), "payload of 8 bytes and 1 headers left out, because the database refused them")
	}
	require.Len(t, b.events.kinds(inbox.DeadLettered), 2)
}

// The event goes the way of the letter where that is what the database refuses.
func TestRoute_LetterRefusedInPart(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.exec(t, `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF 'odd' = ANY (NEW.header_names) THEN RAISE 'odd' USING ERRCODE = 'data_exception'; END IF; RETURN NEW; END $$`)
	b.exec(t, `CREATE TRIGGER refuse BEFORE INSERT ON dead_letters FOR EACH ROW EXECUTE FUNCTION refuse()`)
	in := b.inbox(t, hopeless, inbox.Config{DeadLetterRoute: route})
	msg := message("evt_1")
	msg.Headers = handler.Headers{{Name: "odd", Value: []byte("x")}}

	_, err := in.Process(t.Context(), msg)
	require.NoError(t, err)

	require.Contains(t, b.letters(t)[0].Errors[0], "stored without its 1 headers")
	events := b.toldOf(t)
	require.Len(t, events, 1)
	require.Equal(t, msg.Payload, events[0].Payload)
	require.Contains(t, says(events[0], dlq.HeaderError), "stored without its 1 headers")
	require.Contains(t, says(events[0], dlq.HeaderError), "\nno such warehouse")
}

// Process may be called while another handler runs. That one's message has not
// caused the death of this one.
func TestRoute_CalledInAHandler(t *testing.T) {
	t.Parallel()

	b := setup(t)
	in := b.inbox(t, hopeless, inbox.Config{DeadLetterRoute: route})
	outer := &handler.Message{ID: "outer", Headers: handler.Headers{{Name: handler.HeaderTraceparent, Value: []byte("00-1")}}}
	ctx := handler.WithCause(t.Context(), &handler.Cause{Consumer: "outer", Message: outer})

	_, err := in.Process(ctx, message("evt_1"))
	require.NoError(t, err)

	e := b.toldOf(t)[0]
	require.Equal(t, []string{"evt_1", "", "", "-"}, []string{e.CorrelationID, e.CausationID, e.Source, says(e, handler.HeaderTraceparent)})
}

// Neither the letter nor the event is there while one of them cannot be: the
// message is not settled.
func TestRoute_BothOrNone(t *testing.T) {
	t.Parallel()

	b := setup(t)
	logged := &lines{}
	in := b.inbox(t, hopeless, inbox.Config{DeadLetterRoute: route, Logger: slog.New(slog.NewTextHandler(logged, nil))})
	src := newScripted()
	r := start(t, in, src)
	b.exec(t, `ALTER TABLE outbox RENAME TO elsewhere`)
	require.NoError(t, r.sink.Deliver(t.Context(), src.delivery(message("evt_1"), nil)))
	require.Eventually(t, func() bool {
		return logged.has("a statement of the engine went wrong", "outbox", "42P01")
	}, deadline, tick)
	require.Empty(t, src.answer("evt_1"))
	require.Empty(t, b.letters(t))
	b.exec(t, `ALTER TABLE elsewhere RENAME TO outbox`)

	require.Eventually(t, func() bool { return src.answer("evt_1") == "settled" }, deadline, tick)
	require.Len(t, b.letters(t), 1)
	require.Len(t, b.toldOf(t), 1)
	require.EqualValues(t, 1, in.Stats().FailedAttempts)
	r.stop()
	require.NoError(t, r.wait(t))
}

// Letters of one key are told in the order of their commits, whatever process
// they die in: the one that comes second waits for the first.
func TestRoute_OneKeyInTwoProcesses(t *testing.T) {
	t.Parallel()

	b := setup(t)
	in := b.inbox(t, hopeless, inbox.Config{DeadLetterRoute: route})
	tx, err := b.Pool.Begin(t.Context())
	require.NoError(t, err)
	defer tx.Rollback(context.WithoutCancel(t.Context())) //nolint:errcheck // it is committed below
	require.NoError(t, outbox.Lock(t.Context(), tx, route, "k"))
	died := make(chan error, 1)
	go func() {
		msg := message("evt_1")
		msg.Key = []byte("k")
		_, err := in.Process(context.WithoutCancel(t.Context()), msg)
		died <- err
	}()
	require.Eventually(t, func() bool {
		return b.count(t, `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`) > 0
	}, deadline, tick)
	require.Empty(t, b.toldOf(t))
	require.NoError(t, tx.Commit(t.Context()))

	require.NoError(t, <-died)
	require.Len(t, b.toldOf(t), 1)
}

// What can be known at start is an error at start.
func TestRoute_StartChecks(t *testing.T) {
	t.Parallel()

	for _, bad := range []string{" ", "a\x00b", "\xff", strings.Repeat("x", 256)} {
		pool, err := pgxpool.New(t.Context(), "postgres://127.0.0.1:1/app")
		require.NoError(t, err)
		defer pool.Close()
		_, err = inbox.New(pool, "shipping", effect, inbox.Config{DeadLetterRoute: bad})
		require.ErrorContains(t, err, "DeadLetterRoute is")
	}

	b := setup(t)
	outboxTable := pgx.Identifier{b.Schema, "outbox"}.Sanitize()
	shard := `FUNCTION ` + pgx.Identifier{b.Schema, "shard"}.Sanitize() + `(text, text)`
	tests := []struct{ name, before, after string }{
		{"NoInsert", `REVOKE INSERT ON ` + outboxTable + ` FROM `, `GRANT INSERT ON ` + outboxTable + ` TO `},
		{"NoFunction", `REVOKE EXECUTE ON ` + shard + ` FROM `, `GRANT EXECUTE ON ` + shard + ` TO `},
	}
	pool := b.asApplication(t)
	role := pool.Config().ConnConfig.User
	for _, tt := range tests {
		b.exec(t, tt.before+role)
		in := b.inboxOn(t, pool, tt.name, hopeless, inbox.Config{DeadLetterRoute: route})
		_, err := in.Process(t.Context(), message("evt_1"))
		require.ErrorIs(t, err, schema.ErrForbidden, tt.name)
		require.ErrorContains(t, err, "semel migrate grants")
		without := b.inboxOn(t, pool, tt.name, hopeless, inbox.Config{})
		_, err = without.Process(t.Context(), message("evt_0"))
		require.NoError(t, err, "without a route the right is not needed")

		b.exec(t, tt.after+role)
		outcome, err := in.Process(t.Context(), message("evt_1"))
		require.NoError(t, err, "mended")
		require.Equal(t, handler.Dead, outcome)
	}

	b.exec(t, `ALTER TABLE outbox RENAME TO elsewhere`)
	in := b.inbox(t, hopeless, inbox.Config{DeadLetterRoute: route})
	_, err := in.Process(t.Context(), message("evt_2"))
	require.ErrorContains(t, err, "semel migrate up")
	b.exec(t, `ALTER TABLE elsewhere RENAME TO outbox`)
	require.Len(t, b.toldOf(t), len(tests), "the check leaves no event")
}

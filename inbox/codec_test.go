package inbox_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
	"github.com/semel-go/semel/internal/codectest"
	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/transports/memory"
)

const card = "4111111111111111"

// secret is a message whose payload nobody may find. Its headers are such as a
// stored payload has one of, from somebody outside.
func secret(id, key string) *handler.Message {
	return &handler.Message{
		ID: id, Type: "order.paid", Key: []byte(key), Payload: []byte(`{"id": "` + id + `", "card": "` + card + `"}`),
		Headers: handler.Headers{{Name: handler.HeaderKeyID, Value: []byte("k9")}, {Name: handler.HeaderKeyID, Value: []byte("k9"), Tag: 'S'}},
	}
}

// shop is a consumer of secrets that writes what it is told into the outbox. What
// it is to do with a message stands in its id.
type shop struct {
	writer outbox.Writer
	mended atomic.Bool

	mu   sync.Mutex // guards seen
	seen map[string]int
}

func (s *shop) handle(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
	want := secret(msg.ID, string(msg.Key))
	if msg.ID == "starts it" {
		return nil
	}
	if !bytes.Equal(msg.Payload, want.Payload) || fmt.Sprint(msg.Headers) != fmt.Sprint(want.Headers) {
		return handler.Permanent(fmt.Errorf("message %s is not as it was sent", msg.ID))
	}
	if !s.mended.Load() {
		switch msg.ID {
		case "dead", "parked":
			return handler.Permanent(errors.New("no such order"))
		case "late":
			return errors.New("not yet")
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen[msg.ID]++
	one := outbox.Event{AggregateType: "shipment", AggregateID: msg.ID, Type: "Sent", Payload: msg.Payload}
	two := one
	two.Type = "Told"
	if err := s.writer.Write(ctx, tx, one); err != nil {
		return err
	}
	return s.writer.Write(ctx, tx, one, two)
}

func (s *shop) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.seen)
}

// storeEverywhere has secrets stored in every way there is.
func (b *testBundle) storeEverywhere(t *testing.T, pool *pgxpool.Pool, in *inbox.Inbox, w outbox.Writer) {
	t.Helper()
	expect := func(want handler.Outcome) func(handler.Outcome, error) {
		return func(got handler.Outcome, err error) {
			t.Helper()
			require.NoError(t, err)
			require.Equal(t, want, got)
		}
	}
	expect(handler.Stored)(in.Store(t.Context(), secret("stored", "s")))
	outcomes, err := in.StoreAll(t.Context(), []*handler.Message{secret("bulk 1", "b"), secret("bulk 2", "b"), secret("bulk 3", "")})
	require.NoError(t, err)
	require.Equal(t, []handler.Outcome{handler.Stored, handler.Stored, handler.Stored}, outcomes)
	require.NoError(t, pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		expect(handler.Stored)(in.StoreTx(t.Context(), tx, secret("in a transaction", "")))
		expect(handler.Dead)(in.StoreTx(t.Context(), tx, secret("", "")))
		return nil
	}))
	expect(handler.Processed)(in.Process(t.Context(), secret("handled", "h")))
	expect(handler.Stored)(in.Process(t.Context(), secret("late", "l")))
	expect(handler.Stored)(in.Process(t.Context(), secret("behind", "l")))
	expect(handler.Dead)(in.Process(t.Context(), secret("dead", "")))
	expect(handler.Dead)(in.Process(t.Context(), secret("parked", "p")))
	expect(handler.Dead)(in.Process(t.Context(), secret(" ", "")))
	other := secret("handled", "h")
	other.Payload = append(other.Payload, ' ')
	expect(handler.Mismatch)(in.Process(t.Context(), other))
	large := secret("large", "")
	large.Payload = bytes.Repeat([]byte(card), 1000)
	expect(handler.Dead)(in.Process(t.Context(), large))

	db := stdlib.OpenDBFromPool(b.Pool)
	defer func() { require.NoError(t, db.Close()) }()
	tx, err := db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	event := outbox.Event{AggregateType: "shipment", AggregateID: "sql", Type: "Sent", Payload: secret("sql", "").Payload}
	require.NoError(t, w.WriteSQL(t.Context(), tx, event))
	require.NoError(t, tx.Commit())
}

// A card number that messages carry stands in no table, whatever becomes of them:
// stored in every way, dead, parked, told to the broker, written as events. And it
// all comes back.
func TestCodec(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name string
		pool func(t *testing.T, b *testBundle) *pgxpool.Pool
	}{
		{"Direct", func(_ *testing.T, b *testBundle) *pgxpool.Pool { return b.Pool }},
		{"PgBouncer", func(t *testing.T, b *testBundle) *pgxpool.Pool {
			return through(t, b.PgBouncer(t), "&pool_max_conns=8&default_query_exec_mode=cache_describe")
		}},
		{"PgBouncerExec", func(t *testing.T, b *testBundle) *pgxpool.Pool {
			return through(t, b.PgBouncer(t), "&pool_max_conns=8&default_query_exec_mode=exec")
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			b := setup(t)
			pool, ring := tt.pool(t, b), codectest.New("k1")
			s := &shop{writer: outbox.NewWriter(b.Schema).WithCodec(ring), seen: map[string]int{}}
			in := b.inboxOn(t, pool, "shipping", s.handle, inbox.Config{
				Codec: ring, Ordering: inbox.Strict, DeadLetterRoute: route, MaxPayload: 10_000,
				Retry: inbox.Retry{Attempts: 8, Delay: time.Hour, MaxDelay: time.Hour},
			})
			b.storeEverywhere(t, pool, in, s.writer)

			require.Empty(t, codectest.TablesWith(t, b.Pool, b.Schema, card))
			const encoded = ` WHERE payload IS NOT NULL AND header_names[cardinality(header_names)] = 'semel-key-id' AND header_values[cardinality(header_names)] = 'k1'`
			require.Equal(t, 7, b.count(t, `SELECT count(*) FROM inbox_messages`+encoded))
			require.Equal(t, 6, b.count(t, `SELECT count(*) FROM dead_letters`+encoded))
			require.Equal(t, 6+4, b.count(t, `SELECT count(*) FROM outbox`+encoded))

			// It all comes back: through the worker, replays and a relay, under a new key.
			ring.Add("k2")
			s.mended.Store(true)
			for _, letter := range b.letters(t) {
				if id := letter.Message.ID; id == "dead" || id == "parked" {
					require.True(t, letter.Encoded)
					require.Equal(t, "k1", letter.KeyID)
					require.NoError(t, inbox.NewStore(b.Schema).Replay(t.Context(), pool, letter.ID, "ann"), "who decides has no key")
				}
			}
			works(t, in)
			require.Eventually(t, func() bool {
				_, err := inbox.NewStore(b.Schema).RunNow(t.Context(), pool, "shipping", "late")
				return err == nil && b.inboxRows(t) == 0
			}, deadline, tick)
			require.Equal(t, 10, s.count())
			for id, n := range s.seen {
				require.Equal(t, 1, n, id)
			}
			require.Empty(t, codectest.TablesWith(t, b.Pool, b.Schema, card))

			queue := memory.NewQueue("shipments")
			relay, err := outbox.NewRelay(b.NewPool(t, 6), queue, outbox.RelayConfig{Schema: b.Schema, Codec: ring, Logger: slog.New(slog.DiscardHandler)})
			require.NoError(t, err)
			ctx, stop := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- relay.Run(ctx) }()
			var published atomic.Int32
			consumer := b.inboxOn(t, pool, "billing", func(_ context.Context, _ pgx.Tx, msg *handler.Message) error {
				if !bytes.Contains(msg.Payload, []byte(card)) {
					return handler.Permanent(errors.New("it has no card"))
				}
				published.Add(1)
				return nil
			}, inbox.Config{})
			running := make(chan error, 1)
			go func() { running <- consumer.Run(ctx, memory.NewSource(queue)) }()
			require.Eventually(t, func() bool { return published.Load() == 6+1+3*10 }, deadline, tick, "letters, one by database/sql, and three of each that was handled")
			stop()
			require.NoError(t, <-done)
			require.NoError(t, <-running)
			require.Empty(t, codectest.TablesWith(t, b.Pool, b.Schema, card))
		})
	}
}

// Without a codec it stands in each of them: the look finds what there is.
func TestCodec_Without(t *testing.T) {
	t.Parallel()

	b := setup(t)
	s := &shop{writer: outbox.NewWriter(b.Schema), seen: map[string]int{}}
	in := b.inbox(t, s.handle, inbox.Config{
		Ordering: inbox.Strict, DeadLetterRoute: route, MaxPayload: 10_000, Retry: inbox.Retry{Attempts: 8, Delay: time.Hour, MaxDelay: time.Hour},
	})
	b.storeEverywhere(t, b.Pool, in, s.writer)

	require.Equal(t, []string{"dead_letters", "inbox_messages", "outbox"}, codectest.TablesWith(t, b.Pool, b.Schema, card))
}

// A row whose key is missing is put off and says so; others go on, and so does
// this one when the key is back.
func TestCodec_KeyMissing(t *testing.T) {
	t.Parallel()

	b := setup(t)
	ring := codectest.New("k1")
	cfg := inbox.Config{Codec: ring, Retry: retries, Ordering: inbox.Strict}
	in := b.inbox(t, effect, cfg)
	for _, id := range []string{"a1", "a2"} {
		_, err := in.Store(t.Context(), keyed(id, "a"))
		require.NoError(t, err)
	}
	ring.Add("k2")
	_, err := in.Store(t.Context(), keyed("b1", "b"))
	require.NoError(t, err)
	ring.Remove("k1")
	stop := works(t, in)

	require.Eventually(t, func() bool { return b.effects(t, "b1") == 1 }, deadline, tick)
	require.Eventually(t, func() bool {
		return b.count(t, `SELECT count(*) FROM inbox_messages WHERE errors[1] LIKE '%key id "k1"%' AND attempts = 0 AND ready_at > now() + interval '5 minutes'`) == 1
	}, deadline, tick)
	require.Equal(t, 2, b.inboxRows(t), "the next of its key waits for it")
	store := inbox.NewStore(b.Schema)
	whole, err := store.Load(t.Context(), b.Pool, "shipping", "a1")
	require.NoError(t, err)
	require.True(t, whole.Encoded)
	require.Equal(t, "k1", whole.KeyID)
	_, err = store.WithCodec(ring).Load(t.Context(), b.Pool, "shipping", "a1")
	require.ErrorIs(t, err, handler.ErrCodec)
	stop()

	ring.Add("k1")
	whole, err = store.WithCodec(ring).Load(t.Context(), b.Pool, "shipping", "a1")
	require.NoError(t, err)
	require.False(t, whole.Encoded)
	require.Equal(t, []byte("a1"), whole.Message.Payload)
	results, err := store.RunNow(t.Context(), b.Pool, "shipping", "a1")
	require.NoError(t, err)
	require.True(t, results[0].Changed)
	works(t, in)
	require.Eventually(t, func() bool { return b.effects(t, "a1") == 1 && b.effects(t, "a2") == 1 && b.inboxRows(t) == 0 }, deadline, tick)
	require.Empty(t, b.letters(t))
}

// While no key can be had what is stored waits, spends no attempt, and goes on by
// itself.
func TestCodec_KeysAway(t *testing.T) {
	t.Parallel()

	b := setup(t)
	ring := codectest.New("k1")
	in := b.inbox(t, effect, inbox.Config{Codec: ring, Retry: retries})
	var ids []string
	for i := range 10 {
		ids = append(ids, fmt.Sprint("evt_", i))
		_, err := in.Store(t.Context(), message(ids[i]))
		require.NoError(t, err)
	}
	gone := handler.Unavailable(errors.New("key service away"))
	ring.Fail(gone)
	asked := ring.Asked()
	works(t, in)
	require.Eventually(t, func() bool { return ring.Asked() >= asked+20 }, deadline, tick, "it tries again by itself")
	require.Zero(t, b.count(t, `SELECT coalesce(sum(attempts), 0) FROM inbox_messages`))

	ring.Fail(nil)
	require.Eventually(t, func() bool { return b.inboxRows(t) == 0 }, deadline, tick)
	for _, id := range ids {
		require.Equal(t, 1, b.effects(t, id))
	}
	require.Empty(t, b.letters(t))
}

// What cannot be encoded is not stored, not acknowledged, and not lost.
func TestCodec_CannotEncode(t *testing.T) {
	t.Parallel()

	for name, gone := range map[string]error{
		"Away":     handler.Unavailable(errors.New("key service away")),
		"Anything": handler.Permanent(errors.New("the key is disabled")),
		"LikeOurs": &pgconn.PgError{Code: "22001", Message: "keys in a database"}, // of a message it would be permanent
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			b := setup(t)
			ring := codectest.New("k1")
			s := &shop{writer: outbox.NewWriter(b.Schema).WithCodec(ring), seen: map[string]int{}}
			in := b.inbox(t, s.handle, inbox.Config{Codec: ring, DeadLetterRoute: route, Retry: inbox.Retry{Attempts: 8, Delay: time.Hour, MaxDelay: time.Hour}, QuickAttempts: 2})
			_, err := in.Process(t.Context(), &handler.Message{ID: "starts it"})
			require.NoError(t, err)
			ring.Fail(gone)

			for what, f := range map[string]func() error{
				"Store":    func() error { _, err := in.Store(t.Context(), secret("1", "")); return err },
				"StoreAll": func() error { _, err := in.StoreAll(t.Context(), []*handler.Message{secret("1", "")}); return err },
				"Late":     func() error { _, err := in.Process(t.Context(), secret("late", "")); return err },
				"Dead":     func() error { _, err := in.Process(t.Context(), secret("dead", "")); return err },
				"BadID":    func() error { _, err := in.Store(t.Context(), secret("", "")); return err },
			} {
				err := f()
				require.ErrorIs(t, err, inbox.ErrOutage, what)
				require.ErrorIs(t, err, handler.ErrCodec, what)
				require.ErrorIs(t, err, gone, what)
				require.NotContains(t, err.Error(), card)
				require.NotContains(t, err.Error(), "database unavailable", "it is not")
			}
			require.Error(t, pgx.BeginFunc(t.Context(), b.Pool, func(tx pgx.Tx) error {
				_, err := in.StoreTx(t.Context(), tx, secret("1", ""))
				require.ErrorIs(t, err, handler.ErrCodec)
				return err
			}))
			src := newScripted()
			r := start(t, in, src)
			for _, id := range []string{"dead", "late", ""} {
				require.NoError(t, r.sink.Deliver(t.Context(), src.delivery(secret(id, ""), nil)))
			}
			asked := ring.Asked()
			require.Eventually(t, func() bool { return ring.Asked() >= asked+20 }, deadline, tick, "it is tried again")
			for _, id := range []string{"dead", "late", ""} {
				require.Empty(t, src.answer(id))
			}
			require.Empty(t, b.letters(t))
			require.Zero(t, b.count(t, `SELECT count(*) FROM processed_messages WHERE message_text <> 'starts it'`))
			require.Empty(t, codectest.TablesWith(t, b.Pool, b.Schema, card))

			ring.Fail(nil)
			for _, id := range []string{"dead", "late", ""} {
				require.Eventually(t, func() bool { return src.answer(id) == "settled" }, deadline, tick)
			}
			require.Len(t, b.letters(t), 2)
			require.Empty(t, codectest.TablesWith(t, b.Pool, b.Schema, card))
			s.mended.Store(true)
			_, err = inbox.NewStore(b.Schema).RunNow(t.Context(), b.Pool, "shipping", "late")
			require.NoError(t, err)
			require.Eventually(t, func() bool { return s.count() == 1 }, deadline, tick)
			r.stop()
			require.NoError(t, r.wait(t))
		})
	}
}

// A dead letter is not replayed where its payload cannot be decoded, and stays as
// it is; a worker with the key handles what an operator without one decided.
func TestReplay_KeyMissing(t *testing.T) {
	t.Parallel()

	b := setup(t)
	ring := codectest.New("k1")
	s := &shop{writer: outbox.NewWriter(b.Schema).WithCodec(ring), seen: map[string]int{}}
	_, err := b.inbox(t, s.handle, inbox.Config{Codec: ring}).Process(t.Context(), secret("dead", ""))
	require.NoError(t, err)
	id := b.letters(t)[0].ID
	s.mended.Store(true)

	for name, codec := range map[string]handler.Codec{"NoCodec": nil, "OtherKey": codectest.New("k2")} {
		_, err := b.inbox(t, s.handle, inbox.Config{Codec: codec}).Replay(t.Context(), id)
		require.ErrorIs(t, err, handler.ErrCodec, name)
		require.NotErrorIs(t, err, inbox.ErrOutage, name)
		require.ErrorContains(t, err, `"k1"`, name)
		require.Equal(t, dlq.Open, b.letters(t)[0].State)
		require.Zero(t, b.inboxRows(t))
	}

	require.NoError(t, inbox.NewStore(b.Schema).Replay(t.Context(), b.Pool, id, "ann"))
	stop := works(t, b.inbox(t, s.handle, inbox.Config{}))
	require.Eventually(t, func() bool {
		return b.count(t, `SELECT count(*) FROM inbox_messages WHERE errors[1] LIKE '%encoded under key id "k1": set Config.Codec%'`) == 1
	}, deadline, tick)
	stop()
	require.Zero(t, s.count())
	b.exec(t, `UPDATE inbox_messages SET ready_at = now()`)
	works(t, b.inbox(t, s.handle, inbox.Config{Codec: ring}))
	require.Eventually(t, func() bool { return s.count() == 1 && b.inboxRows(t) == 0 }, deadline, tick)
	require.Equal(t, dlq.Resolved, b.letters(t)[0].State)
}

// oneWay is a codec that does not give back what it was given.
type oneWay struct{ *codectest.Keyring }

func (oneWay) Decode(context.Context, []byte, string) ([]byte, error) { return []byte("x"), nil }

// A codec that loses payloads is found before the first is.
func TestStart_Codec(t *testing.T) {
	t.Parallel()

	b := setup(t)
	in := b.inbox(t, effect, inbox.Config{Codec: oneWay{codectest.New("k1")}})
	_, err := in.Process(t.Context(), message("evt_1"))
	require.ErrorIs(t, err, handler.ErrCodec)
	require.ErrorContains(t, err, "it decodes something else")

	ring := codectest.New("k1")
	ring.Fail(errors.New("no right to encrypt"))
	in = b.inbox(t, effect, inbox.Config{Codec: ring})
	_, err = in.Process(t.Context(), message("evt_1"))
	require.ErrorIs(t, err, handler.ErrCodec)
	ring.Fail(nil)
	_, err = in.Process(t.Context(), message("evt_1"))
	require.NoError(t, err)
}

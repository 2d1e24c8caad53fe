package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/internal/codectest"
	"github.com/semel-go/semel/outbox"
)

const card = "4111111111111111"

// secret is an event of order id whose payload nobody may find.
func secret(id string, version int64) outbox.Event {
	e := order(id, version)
	e.Payload = []byte(`{"card": "` + card + `"}`)
	return e
}

func TestWriter_WithCodec(t *testing.T) {
	t.Parallel()

	ours := func(tag byte) handler.Header {
		return handler.Header{Name: handler.HeaderKeyID, Value: []byte("k9"), Tag: tag}
	}
	events := []outbox.Event{secret("1", 1), secret("2", 1), secret("3", 1), secret("4", 1), secret("5", 1)}
	events[1].Headers = handler.Headers{{Name: "a", Value: []byte("1"), Tag: 'S'}, {Name: "b"}}
	events[2].Headers = handler.Headers{{Name: "a"}, ours(0)}
	events[3].Payload = []byte{}
	events[4].Payload, events[4].Headers = nil, handler.Headers{ours(0)}
	for i := range events {
		events[i].ID = outbox.NewID()
	}
	for _, way := range []string{"One", "Many", "SQL"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()

			b := setup(t)
			ring := codectest.New("k1")
			b.writer = b.writer.WithCodec(ring)
			switch way {
			case "One":
				for _, e := range events {
					b.write(t, e)
				}
			case "Many":
				b.write(t, events...)
			case "SQL":
				db := stdlib.OpenDBFromPool(b.Pool)
				defer func() { require.NoError(t, db.Close()) }()
				tx, err := db.BeginTx(t.Context(), nil)
				require.NoError(t, err)
				require.NoError(t, b.writer.WriteSQL(t.Context(), tx, events...))
				require.NoError(t, tx.Commit())
			}

			require.Empty(t, codectest.TablesWith(t, b.Pool, b.Schema, card))
			plain := outbox.NewStore(b.Schema)
			for _, e := range events {
				r, err := plain.WithCodec(ring).Load(t.Context(), b.Pool, e.ID)
				require.NoError(t, err)
				require.Equal(t, e, r.Event)
				require.False(t, r.Encoded)

				r, err = plain.Load(t.Context(), b.Pool, e.ID)
				require.NoError(t, err)
				require.Equal(t, e.Headers, r.Headers, "the header is ours, not the event's")
				require.Equal(t, e.Payload != nil, r.Encoded)
				if r.Encoded {
					require.Equal(t, "k1", r.KeyID)
					require.NotEqual(t, e.Payload, r.Payload)
				}
			}
			ring.Remove("k1")
			_, err := plain.WithCodec(ring).Load(t.Context(), b.Pool, events[0].ID)
			require.ErrorIs(t, err, handler.ErrCodec)

			// A header with the tag of ours makes no payload look encoded.
			for _, w := range []outbox.Writer{outbox.NewWriter(b.Schema), outbox.NewWriter(b.Schema).WithCodec(codectest.New("k2"))} {
				b.writer = w
				e := order("6", 1)
				e.ID, e.Headers = outbox.NewID(), handler.Headers{ours('*')}
				b.write(t, e)
				r, err := plain.WithCodec(codectest.New("k2")).Load(t.Context(), b.Pool, e.ID)
				require.NoError(t, err)
				require.Equal(t, handler.Headers{ours(0)}, r.Headers)
				require.Equal(t, e.Payload, r.Payload)
			}
		})
	}
}

// What cannot be encoded is not written, and the transaction is whole.
func TestWriter_WithCodec_Away(t *testing.T) {
	t.Parallel()

	b := setup(t)
	ring := codectest.New("k1")
	gone := errors.New("key service away")
	ring.Fail(gone)
	require.NoError(t, pgx.BeginFunc(t.Context(), b.Pool, func(tx pgx.Tx) error {
		err := b.writer.WithCodec(ring).Write(t.Context(), tx, secret("1", 1), secret("2", 1))
		require.ErrorIs(t, err, handler.ErrCodec)
		require.ErrorIs(t, err, gone)
		require.NotContains(t, err.Error(), card)
		return b.writer.WithCodec(ring).Write(t.Context(), tx, outbox.Event{AggregateType: "order", AggregateID: "3", Type: "Gone"})
	}))
	require.Equal(t, 1, query[int](t, b, `SELECT count(*)::int FROM semel.outbox`))
	require.Empty(t, codectest.TablesWith(t, b.Pool, b.Schema, card))
}

// Events of an old key, of a new one, and of before there was one go out as they
// were written, in order.
func TestRelay_Codec(t *testing.T) {
	t.Parallel()

	for _, ordered := range []bool{true, false} {
		t.Run(fmt.Sprintf("ordered=%t", ordered), func(t *testing.T) {
			t.Parallel()

			b := setup(t)
			ring := codectest.New("k1")
			const aggregates = 20
			write := func(version int64) {
				for a := range aggregates {
					b.write(t, secret(fmt.Sprint(a), version))
				}
			}
			write(1)
			b.writer = b.writer.WithCodec(ring)
			write(2)
			ring.Add("k2")
			write(3)
			p, cfg := &recorder{ordered: ordered}, quick()
			cfg.Codec = ring
			cfg.Validate = func(m *handler.Message) error {
				if !strings.Contains(string(m.Payload), card) {
					return handler.Permanent(errors.New("not as it was written"))
				}
				return nil
			}
			b.relay(t, p, cfg)

			b.awaitPublished(t, 3*aggregates)
			requireOrder(t, p.messages(), 3*aggregates)
			for _, m := range p.messages() {
				require.Equal(t, secret(string(m.Key), m.Version).Payload, m.Payload)
				_, ours := m.Headers.First(handler.HeaderKeyID)
				require.False(t, ours)
			}
		})
	}
}

// partly is a keyring that answers err for one key.
type partly struct {
	*codectest.Keyring
	id  string
	err atomic.Pointer[error]
}

func (p *partly) set(err error) {
	if err == nil {
		p.err.Store(nil)
		return
	}
	p.err.Store(&err)
}

func (p *partly) Decode(ctx context.Context, stored []byte, keyID string) ([]byte, error) {
	if err := p.err.Load(); err != nil && keyID == p.id {
		return nil, *err
	}
	return p.Keyring.Decode(ctx, stored, keyID)
}

// An event whose key is missing holds back its own aggregate, says so in its row,
// and goes out when the key is back.
func TestRelay_KeyMissing(t *testing.T) {
	t.Parallel()

	for _, ordered := range []bool{true, false} {
		t.Run(fmt.Sprintf("ordered=%t", ordered), func(t *testing.T) {
			t.Parallel()

			b := setup(t)
			ring := codectest.New("k1")
			b.writer = b.writer.WithCodec(ring)
			b.write(t, secret("bad", 1))
			ring.Add("k2")
			b.write(t, secret("bad", 2), secret("good", 1), secret("good", 2))
			ring.Remove("k1")
			p, cfg := &recorder{ordered: ordered}, quick()
			cfg.Codec = ring
			b.relay(t, p, cfg)

			b.awaitStates(t, "good", "published published")
			require.Eventually(t, func() bool {
				return query[int](t, b, `SELECT attempts FROM semel.outbox WHERE aggregateid = 'bad' AND version = 1`) >= 3
			}, deadline, tick)
			require.Equal(t, `decode payload stored under key id "k1": codec of stored payloads: there is no key "k1"`,
				query[string](t, b, `SELECT last_error FROM semel.outbox WHERE aggregateid = 'bad' AND version = 1`))
			require.Len(t, p.messages(), 2)

			ring.Add("k1")
			b.awaitStates(t, "bad", "published published")
			requireOrder(t, p.messages(), 4)
		})
	}
}

// Somebody runs a relay without the codec: what is encoded waits for one that has
// it, and nothing goes out as it is stored.
func TestRelay_NoCodec(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.write(t, order("plain", 1))
	ring := codectest.New("k1")
	b.writer = b.writer.WithCodec(ring)
	b.write(t, secret("1", 1), secret("1", 2), secret("2", 1))
	p := &recorder{ordered: true}
	wrong := b.relay(t, p, quick())

	b.awaitStates(t, "plain", "published")
	require.Eventually(t, func() bool {
		return query[int](t, b, `SELECT count(*)::int FROM semel.outbox WHERE last_error LIKE '%under key id "k1"%there is none here%'`) == 2
	}, deadline, tick)
	require.Len(t, p.messages(), 1)
	wrong.stop()

	cfg := quick()
	cfg.Codec = ring
	b.relay(t, p, cfg)
	b.awaitPublished(t, 4)
	requireOrder(t, p.messages(), 4)
}

// padded is a codec that makes a megabyte of everything.
type padded struct{}

func (padded) Encode(_ context.Context, payload []byte) ([]byte, string, error) {
	return append(make([]byte, 1<<20), payload...), "", nil
}

func (padded) Decode(_ context.Context, stored []byte, _ string) ([]byte, error) {
	return stored[1<<20:], nil
}

// What a relay has in memory is counted in and out alike, whatever a codec makes
// of it. Else it would stand still after some hours.
func TestRelay_CodecCounted(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.writer = b.writer.WithCodec(padded{})
	const n = 70 // and 64 MB are what a relay has in memory
	var events []outbox.Event
	for v := range int64(n) {
		events = append(events, secret("1", v+1))
	}
	for some := range slices.Chunk(events, 10) {
		b.write(t, some...)
	}
	p, cfg := &recorder{ordered: true}, quick()
	cfg.Codec = padded{}
	b.relay(t, p, cfg)

	b.awaitPublished(t, n)
	requireOrder(t, p.messages(), n)
}

// A damaged payload is shown to a person at once.
func TestRelay_Damaged(t *testing.T) {
	t.Parallel()

	b := setup(t)
	ring := codectest.New("k1")
	b.writer = b.writer.WithCodec(ring)
	b.write(t, secret("bad", 1), secret("bad", 2), secret("good", 1))
	b.exec(t, `UPDATE semel.outbox SET payload = payload || '\x00' WHERE aggregateid = 'bad' AND version = 1`)
	told := make(chan outbox.Quarantined, 10)
	p, cfg := &recorder{ordered: true}, quick()
	cfg.Codec = ring
	cfg.OnQuarantine = func(_ context.Context, q outbox.Quarantined) { told <- q }
	b.relay(t, p, cfg)

	b.awaitStates(t, "bad", "quarantined pending")
	b.awaitStates(t, "good", "published")
	q := <-told
	require.ErrorIs(t, q.Err, handler.ErrCodec)
	require.Equal(t, 1, q.Attempts)
	require.NotContains(t, string(q.Message.Payload), card)
}

// While a key cannot be had no attempt is spent. Other types go on, and so do
// aggregates of other keys, unless one after the other waits for this one.
func TestRelay_KeysAway(t *testing.T) {
	t.Parallel()

	for _, ordered := range []bool{true, false} {
		for _, n := range []int{3, 250} { // few, and more than one lane holds back one by one
			t.Run(fmt.Sprintf("ordered=%t/%d", ordered, n), func(t *testing.T) {
				t.Parallel()

				b := setup(t)
				ring := &partly{Keyring: codectest.New("k1"), id: "k1"}
				ring.set(handler.Unavailable(errors.New("key service away")))
				plain := b.writer
				b.writer = plain.WithCodec(ring)
				for version := range int64(2) {
					for a := range n {
						b.write(t, secret(fmt.Sprint(a), version+1))
					}
				}
				var log logbook
				p, cfg := &recorder{ordered: ordered}, quick()
				cfg.Codec, cfg.Logger = ring, log.logger()
				relay := b.relay(t, p, cfg)
				ring.Add("k2")
				for version := range int64(5) {
					if n < 100 {
						b.write(t, secret("other key", version+1))
					}
					b.writer = plain
					b.write(t, outbox.Event{AggregateType: "invoice", AggregateID: "1", Type: "Sent", Version: version + 1})
					b.writer = plain.WithCodec(ring)
				}

				if n < 100 {
					b.awaitStates(t, "other key", "published published published published published")
				}
				require.Eventually(t, func() bool { return relay.Stats().Kinds["invoice"].Sent == 5 }, deadline, tick)
				require.Eventually(t, func() bool { return strings.Contains(log.String(), "cannot have the key") }, deadline, tick)
				require.Zero(t, query[int](t, b, `SELECT count(*)::int FROM semel.outbox WHERE attempts > 0 OR next_attempt_at IS NOT NULL`))
				require.Equal(t, 0, strings.Count(log.String(), "the broker is left alone"), "it did nothing wrong")

				ring.set(nil)
				require.Eventually(t, func() bool { return relay.Stats().Kinds["order"].Sent >= int64(2*n) }, deadline, tick)
				require.Eventually(t, func() bool {
					return query[int](t, b, `SELECT count(*)::int FROM semel.outbox WHERE published_at IS NULL`) == 0
				}, deadline, tick)
				requireOrder(t, p.messages(), len(p.messages()))
				require.Zero(t, query[int](t, b, `SELECT count(*)::int FROM semel.outbox WHERE attempts > 0`))
			})
		}
	}
}

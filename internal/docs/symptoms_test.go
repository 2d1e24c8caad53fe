package docs_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/dedup/calls"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/schema"
)

// symptoms brings a database into the state that a heading of docs/runbook.md
// names.
var symptoms = map[string]func(*testing.T, *patient){
	"Events are not published": func(t *testing.T, p *patient) {
		t.Helper()
		p.writes(t, "1", "2", "3")
		p.exec(t, `UPDATE semel.outbox SET created_at = created_at - interval '1 hour'`)
	},
	"The broker is away": func(t *testing.T, p *patient) {
		t.Helper()
		p.writes(t, "1", "2", "3")
		relay := p.relays(t, func(*handler.Message) error { return handler.Unavailable(errors.New("connection refused")) })
		require.Eventually(t, func() bool { return relay.Stats().Outages > 0 }, time.Minute, 10*time.Millisecond)
	},
	"An event is in quarantine":        hasQuarantine,
	"An event must never be published": hasQuarantine,
	"Messages are in the dead letters": func(t *testing.T, p *patient) {
		t.Helper()
		p.dies(t, "evt_1", "evt_2")
		p.mend(t)
	},
	"Many messages died of one cause": func(t *testing.T, p *patient) {
		t.Helper()
		p.dies(t, "evt_1", "evt_2", "evt_3")
	},
	"A message must never be handled": func(t *testing.T, p *patient) {
		t.Helper()
		p.dies(t, "evt_1")
	},
	"An id came with another payload": func(t *testing.T, p *patient) {
		t.Helper()
		p.mended.Store(true)
		p.sends(t, handler.Processed, &handler.Message{ID: "evt_1", Type: "order.paid", Payload: []byte(`{"amount": 10}`)})
		p.sends(t, handler.Mismatch, &handler.Message{ID: "evt_1", Type: "order.paid", Payload: []byte(`{"amount": 1000}`)})
	},
	"A key stands still": func(t *testing.T, p *patient) {
		t.Helper()
		p.cfg.Ordering = inbox.Strict
		p.sends(t, handler.Dead, anOrder("evt_1"))
		p.sends(t, handler.Stored, anOrder("evt_2"), anOrder("evt_3"))
		p.mend(t)
	},
	"Messages wait for a later attempt": func(t *testing.T, p *patient) {
		t.Helper()
		p.cfg.Retry = inbox.Retry{Attempts: 8}
		p.sends(t, handler.Stored, anOrder("evt_1"), anOrder("evt_2"))
		p.exec(t, `UPDATE semel.inbox_messages SET ready_at = clock_timestamp() + interval '1 hour'`)
	},
	"Nobody knows whether a call was done": hasUnknownCall,
	"Was it handled, was it published?": func(t *testing.T, p *patient) {
		t.Helper()
		p.mended.Store(true)
		p.sends(t, handler.Processed, anOrder("evt_1"))
		p.writes(t, "1", "2")
		p.exec(t, `UPDATE semel.outbox SET correlation_id = 'req-7'`)
		p.exec(t, `UPDATE semel.outbox SET published_at = clock_timestamp() WHERE aggregateid = '1'`)
	},
	"A service does not start: the schema is older than this program": func(t *testing.T, p *patient) {
		t.Helper()
		_, err := schema.Down(t.Context(), p.pool, "", 4)
		require.NoError(t, err)
	},
	"A service does not start: the database role lacks a right": func(*testing.T, *patient) {}, // what is printed is the same in any
	"Somebody asks for an event of long ago": func(t *testing.T, p *patient) {
		t.Helper()
		p.writes(t, "1", "2")
		p.exec(t, `UPDATE semel.outbox SET created_at = created_at - interval '40 days', published_at = clock_timestamp() - interval '40 days'`)
	},
	"The tables grow": func(t *testing.T, p *patient) {
		t.Helper()
		p.dies(t, "evt_1")
		p.mended.Store(true)
		p.sends(t, handler.Processed, anOrder("evt_2"), anOrder("evt_3"))
		p.writes(t, "1", "2")
		for _, sql := range []string{
			`UPDATE semel.processed_messages SET processed_at = processed_at - interval '40 days'`,
			`UPDATE semel.outbox SET created_at = created_at - interval '40 days', published_at = clock_timestamp() - interval '40 days'`,
			`UPDATE semel.dead_letters SET state = 'discarded', created_at = created_at - interval '99 days', resolved_at = clock_timestamp() - interval '98 days'`,
			`UPDATE semel.consumers SET settings_at = settings_at - interval '40 days', purging_at = NULL`,
			`UPDATE semel.relay_leases SET purging_at = purging_at - interval '40 days'`,
		} {
			p.exec(t, sql)
		}
	},
}

// patient is a database that something is wrong with.
type patient struct {
	pool   *pgxpool.Pool
	cfg    inbox.Config // of the consumer shipping
	mended atomic.Bool  // its handler works
}

func newPatient(t *testing.T, database string) *patient {
	t.Helper()
	cfg, err := pgxpool.ParseConfig(database)
	require.NoError(t, err)
	cfg.MaxConns = 10
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	_, err = schema.Up(t.Context(), pool, "", 0)
	require.NoError(t, err)
	return &patient{pool: pool, cfg: inbox.Config{
		Workers: 8, Logger: slog.New(slog.DiscardHandler), QuickAttempts: 1, Retry: inbox.Retry{Attempts: 1},
	}}
}

func (p *patient) exec(t *testing.T, sql string) {
	t.Helper()
	_, err := p.pool.Exec(t.Context(), sql)
	require.NoError(t, err)
}

// writes writes an event of each order.
func (p *patient) writes(t *testing.T, orders ...string) {
	t.Helper()
	events := make([]outbox.Event, len(orders))
	for i, id := range orders {
		events[i] = outbox.Event{
			ID: fmt.Sprintf("0193c000-0000-7000-8000-%012d", i+1), AggregateType: "order", AggregateID: id, Type: "OrderPaid",
			Payload: []byte(`{"id": ` + id + `}`), ContentType: "application/json", CorrelationID: "req-7",
		}
	}
	require.NoError(t, pgx.BeginFunc(t.Context(), p.pool, func(tx pgx.Tx) error { return outbox.Write(t.Context(), tx, events...) }))
}

// answering is a publisher.
type answering func(*handler.Message) error

func (a answering) Publish(_ context.Context, msgs []*handler.Message) []error {
	errs := make([]error, len(msgs))
	for i, msg := range msgs {
		errs[i] = a(msg)
	}
	return errs
}

// relays runs a relay until the test ends.
func (p *patient) relays(t *testing.T, answer answering) *outbox.Relay {
	t.Helper()
	relay, err := outbox.NewRelay(p.pool, answer, outbox.RelayConfig{Name: "shop-1/4711", Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	runs(t, relay.Run)
	return relay
}

// runs has something run until the test ends.
func runs(t *testing.T, run func(context.Context) error) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-done)
	})
}

// hasQuarantine has an event that is refused for good, one that waits behind it,
// and one of another order that was published. The relay is gone.
func hasQuarantine(t *testing.T, p *patient) {
	t.Helper()
	p.writes(t, "1", "2", "2")
	ctx, stop := context.WithCancel(t.Context())
	relay, err := outbox.NewRelay(p.pool, answering(func(msg *handler.Message) error {
		if string(msg.Key) == "2" {
			return handler.Permanent(errors.New("record of 1,200,000 bytes, the topic takes 1,048,588"))
		}
		return nil
	}), outbox.RelayConfig{Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- relay.Run(ctx) }()
	require.Eventually(t, func() bool {
		return relay.Stats().Kinds["order"] == outbox.KindStats{Sent: 1, Failed: 1, Quarantined: 1}
	}, time.Minute, 10*time.Millisecond)
	stop()
	require.NoError(t, <-done)
}

func anOrder(id string) *handler.Message {
	return &handler.Message{ID: id, Type: "order.paid", Key: []byte("order-1"), CorrelationID: "req-7", Payload: []byte(`{"id": 1}`)}
}

// consumer is a process of the consumer shipping.
func (p *patient) consumer(t *testing.T) *inbox.Inbox {
	t.Helper()
	in, err := inbox.New(p.pool, "shipping", func(context.Context, pgx.Tx, *handler.Message) error {
		if p.mended.Load() {
			return nil
		}
		return errors.New("reserve stock: no such warehouse")
	}, p.cfg)
	require.NoError(t, err)
	return in
}

func (p *patient) sends(t *testing.T, want handler.Outcome, msgs ...*handler.Message) {
	t.Helper()
	in := p.consumer(t)
	for _, msg := range msgs {
		outcome, err := in.Process(t.Context(), msg)
		require.NoError(t, err)
		require.Equal(t, want, outcome)
	}
}

// dies has messages die.
func (p *patient) dies(t *testing.T, ids ...string) {
	t.Helper()
	for _, id := range ids {
		p.sends(t, handler.Dead, anOrder(id))
	}
}

// mend mends the handler, and has a process work the inbox from now on.
func (p *patient) mend(t *testing.T) {
	t.Helper()
	p.mended.Store(true)
	runs(t, p.consumer(t).Work)
}

// hasUnknownCall has a call that got no answer, to a provider that knows no keys.
func hasUnknownCall(t *testing.T, p *patient) {
	t.Helper()
	ledger, err := calls.New(p.pool, calls.Config{})
	require.NoError(t, err)
	in, err := inbox.New(p.pool, "billing", func(context.Context, pgx.Tx, *handler.Message) error { return nil }, inbox.Config{
		Workers: 1, Logger: slog.New(slog.DiscardHandler),
		Prepare: func(ctx context.Context, msg *handler.Message) error {
			_, err := ledger.Do(ctx, msg, "create-invoice", func(context.Context, string) ([]byte, error) {
				return nil, fmt.Errorf("%w: connection reset", handler.ErrCallUnknown)
			}, calls.Options{KeyTTL: -1})
			return err
		},
	})
	require.NoError(t, err)
	outcome, err := in.Process(t.Context(), anOrder("evt_1"))
	require.NoError(t, err)
	require.Equal(t, handler.Dead, outcome)
	p.exec(t, `UPDATE semel.calls SET deadline = deadline - interval '1 minute', sent_first_at = sent_first_at - interval '1 minute'`)
}

package outbox_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/outbox"
)

// recorder is a publisher that notes what it confirms. It may refuse.
type recorder struct {
	ordered bool
	answer  func(ctx context.Context, msg *handler.Message) error // nil: confirm all

	mu   sync.Mutex
	got  []*handler.Message
	asks int
}

func (p *recorder) KeepsOrder() bool { return p.ordered }

func (p *recorder) Publish(ctx context.Context, msgs []*handler.Message) []error {
	errs := make([]error, len(msgs))
	failed := map[string]error{}
	for i, msg := range msgs {
		key := msg.Origin.Topic + "/" + string(msg.Key)
		if errs[i] = failed[key]; errs[i] == nil && p.answer != nil {
			errs[i] = p.answer(ctx, msg)
		}
		failed[key] = errs[i]
		p.mu.Lock()
		p.asks++
		if errs[i] == nil {
			p.got = append(p.got, msg)
		}
		p.mu.Unlock()
	}
	return errs
}

func (p *recorder) messages() []*handler.Message {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]*handler.Message(nil), p.got...)
}

// running is a relay while it runs.
type running struct {
	*outbox.Relay
	stop func()
}

// relay runs a relay until the test ends, or stop is called.
func (b *testBundle) relay(t *testing.T, p handler.Publisher, cfg outbox.RelayConfig) *running {
	t.Helper()
	return b.relayOn(t, b.NewPool(t, 6), p, cfg)
}

// relayOn is [testBundle.relay] with a pool of its own.
func (b *testBundle) relayOn(t *testing.T, pool *pgxpool.Pool, p handler.Publisher, cfg outbox.RelayConfig) *running {
	t.Helper()
	cfg.Schema = b.Schema
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	relay, err := outbox.NewRelay(pool, p, cfg)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- relay.Run(ctx) }()
	stop := sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-done:
			require.NoError(t, err)
		case <-time.After(deadline):
			require.FailNow(t, "Run did not return")
		}
	})
	t.Cleanup(stop)
	return &running{Relay: relay, stop: stop}
}

// awaitPublished waits until so many rows are marked.
func (b *testBundle) awaitPublished(t *testing.T, n int) {
	t.Helper()
	require.Eventually(t, func() bool {
		return query[int](t, b, `SELECT count(*)::int FROM semel.outbox WHERE published_at IS NOT NULL`) == n
	}, deadline, 10*time.Millisecond, "%d events published", n)
}

// requireOrder requires that the versions of each aggregate rise without a gap
// from 1, each once.
func requireOrder(t *testing.T, got []*handler.Message, total int) {
	t.Helper()
	require.Len(t, got, total)
	last := map[string]int64{}
	for _, m := range got {
		key := m.Origin.Topic + "/" + string(m.Key)
		require.LessOrEqual(t, m.Version, last[key]+1, "PROMISE BROKEN: a gap in aggregate %s", key)
		require.Equal(t, last[key]+1, m.Version, "aggregate %s", key)
		last[key] = m.Version
	}
}

func TestRelay(t *testing.T) {
	t.Parallel()

	for _, ordered := range []bool{true, false} {
		t.Run(fmt.Sprintf("ordered=%t", ordered), func(t *testing.T) {
			t.Parallel()

			b := setup(t)
			const aggregates, each = 50, 40
			for v := range int64(each) {
				var events []outbox.Event
				for a := range aggregates {
					events = append(events, order(fmt.Sprint(a), v+1))
				}
				b.write(t, events...)
			}
			p := &recorder{ordered: ordered}
			relay := b.relay(t, p, outbox.RelayConfig{})

			b.awaitPublished(t, aggregates*each)
			relay.stop()

			requireOrder(t, p.messages(), aggregates*each)
			require.Equal(t, int64(aggregates*each), relay.Stats().Kinds["order"].Sent)
			require.Zero(t, query[int](t, b, `SELECT count(*)::int FROM semel.relay_leases WHERE owner IS NOT NULL`), "leases given back")
			require.Zero(t, query[int](t, b, `SELECT count(*)::int FROM semel.relays`))
		})
	}
}

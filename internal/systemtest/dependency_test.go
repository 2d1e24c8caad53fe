package systemtest_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/breaker"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
)

// dependency is a service that messages need, behind a breaker.
type dependency struct {
	breaker  *breaker.Breaker
	server   *httptest.Server
	down     atomic.Bool
	requests atomic.Int64 // that reached it while it was down
}

func newDependency(t *testing.T) *dependency {
	t.Helper()
	d := &dependency{breaker: breaker.New("invoices", breaker.Config{Failures: 5, OpenFor: 200 * time.Millisecond, OpenMax: time.Second})}
	d.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if d.down.Load() {
			d.requests.Add(1)
			http.Error(w, "down for maintenance", http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(d.server.Close)
	return d
}

var errUnanswered = errors.New("invoices cannot be made")

// prepare is a call as a consumer makes it, before its transaction.
func (d *dependency) prepare(ctx context.Context, _ *handler.Message) error {
	return d.breaker.Do(ctx, func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, d.server.URL, http.NoBody)
		if err != nil {
			return err
		}
		answer, err := d.server.Client().Do(request)
		if err != nil {
			return err
		}
		defer func() { _ = answer.Body.Close() }()
		if answer.StatusCode != http.StatusOK {
			return handler.Unavailable(fmt.Errorf("%w: %s", errUnanswered, answer.Status))
		}
		return nil
	})
}

// Case P4: a dependency was down for minutes under load. Its breaker was open, and each
// refusal by it counted as a failed attempt: ten thousand healthy messages went to the
// dead letters, those that the half-open breaker turned away among them (watermill
// CircuitBreaker; gobreaker#30). The source is paused, single messages try, no attempt
// is spent, and all of them are handled after.
func TestOutage_DependencyAway(t *testing.T) {
	t.Parallel()

	eachBroker(t, func(t *testing.T, kind string) {
		lasts := outageTime(t)
		n := 3000
		if lasts >= time.Minute {
			n = 10_000
		}
		b := setup(t, kind, place{partitions: 3})
		d := newDependency(t)
		sent := messages(0, n)
		for from := 0; from < n; from += 1000 {
			send(t, b.broker, sent[from:from+1000]...)
		}
		r := b.start(t, effect, inbox.Config{Prepare: d.prepare, Gates: []*breaker.Breaker{d.breaker}})
		b.awaitEffects(t, 100)

		d.down.Store(true)
		began := time.Now()
		await(t, "the consumer to pause", func() bool {
			s := r.in.Stats()
			return s.Paused && s.Running == 0 // what had called before is through, and nothing tries
		})
		settled := r.passed().settled
		require.Less(t, settled, n)
		if kind == onRabbitMQ { // all but those that tried came back: the broker could give them to somebody else
			await(t, "the consumer to be cancelled", func() bool { return b.broker.(*queue).consumers(t) == 0 })
			await(t, "what was not started to be back", func() bool { return b.broker.left(t) == n-settled-r.inFlight() })
			require.Less(t, r.inFlight(), 3*workers, "what had begun")
		}
		left := b.broker.left(t)
		require.Greater(t, left, n-settled-3*workers)

		end := began.Add(lasts)
		func() { // as await does, without an end of its own
			ticker := time.NewTicker(100 * time.Millisecond)
			defer ticker.Stop()
			for time.Now().Before(end) {
				<-ticker.C
				s := r.in.Stats()
				require.True(t, s.Paused)
				require.Equal(t, []string{"invoices"}, s.GatesClosed)
				require.Less(t, s.FailedAttempts, int64(3*workers), "those that opened it are given back when they go on")
				require.Zero(t, s.Dead)
				require.Zero(t, s.Stored)
				require.LessOrEqual(t, s.Running, 1, "one at a time tries")
				require.Equal(t, settled, r.passed().settled, "settled while the dependency was away")
			}
		}()
		if kind == onRabbitMQ {
			require.Zero(t, b.broker.(*queue).consumers(t))
			back := b.broker.left(t) // one that was given back as it was counted may have come since
			require.GreaterOrEqual(t, back, left)
			require.LessOrEqual(t, back, n-settled)
			require.LessOrEqual(t, r.mostReturns(), 2)
		} else {
			require.GreaterOrEqual(t, b.broker.left(t), n-settled, "the records wait in the topic")
		}
		require.Equal(t, settled, b.count(t))
		var spent int
		require.NoError(t, b.Pool.QueryRow(t.Context(), `SELECT count(*) FROM inbox_messages WHERE attempts > 0`).Scan(&spent))
		require.Zero(t, spent)
		require.Empty(t, b.letters(t))
		requests := d.requests.Load()
		t.Logf("%d requests in %s while it was down, %d messages waiting", requests, lasts, n-settled)
		require.Greater(t, requests, int64(5), "it is tried")
		require.Less(t, requests, int64(workers+5)+5*int64(lasts/time.Second), "what ran as it went down, and trials")

		d.down.Store(false)
		for settled < n { // a busy machine takes its time for all of them
			await(t, "more to be settled", func() bool { return r.passed().settled > settled })
			settled = r.passed().settled
		}
		r.finish(t)
		b.requireOneEffectEach(t, ids(sent))
		require.Zero(t, b.broker.left(t))
		s := r.in.Stats()
		require.Zero(t, s.FailedAttempts)
		require.EqualValues(t, 1, s.Outages)
		require.False(t, s.Paused)
		require.Empty(t, s.GatesClosed)
		require.Empty(t, b.letters(t))
	})
}

// While a dependency is away the messages of a key stay in their order, and a broker
// that counts deliveries and gives up what has too many does not lose any: single
// messages try again and again, the others come back at most twice.
func TestOutage_DependencyAwayInOrder(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name    string
		kind    string
		place   place
		inOrder bool
	}{
		{name: "Kafka", kind: onKafka, place: place{partitions: 3}, inOrder: true},
		{name: "ExclusiveConsumer", kind: onRabbitMQ, inOrder: true},
		{name: "QuorumQueue", kind: onRabbitMQ, place: place{deliveryLimit: 4}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			const n = 1000
			b := setup(t, tt.kind, tt.place)
			d := newDependency(t)
			sent := keyedMessages(0, n)
			send(t, b.broker, sent...)
			cfg := inbox.Config{Prepare: d.prepare, Gates: []*breaker.Breaker{d.breaker}}
			if tt.inOrder {
				cfg.Ordering = inbox.Strict
			}
			recipe := b.broker.recipe()
			recipe.Exclusive = tt.inOrder
			r := b.run(t, b.inbox(t, b.Pool, effect, cfg), recipe.source(b.log.logger()))
			b.awaitEffects(t, 100)
			d.down.Store(true)
			await(t, "the consumer to pause", func() bool { return r.in.Stats().Paused })
			paused := d.requests.Load()
			await(t, "some trials", func() bool { return d.requests.Load() > paused+6 })
			require.Less(t, b.count(t), n)
			d.down.Store(false)
			await(t, "all effects", func() bool { return b.count(t) >= n })
			r.finish(t)
			b.exhaust(t)
			b.requireOneEffectEach(t, ids(sent))
			if tt.inOrder {
				b.requireOrder(t, sent)
			}
			require.LessOrEqual(t, r.mostReturns(), 2)
			require.Zero(t, r.in.Stats().FailedAttempts)
			require.Empty(t, b.letters(t))
		})
	}
}

// consumers is how many the queue has.
func (q *queue) consumers(t *testing.T) int {
	t.Helper()
	state, err := q.channel.QueueDeclarePassive(q.name, true, false, false, false, q.args)
	require.NoError(t, err)
	return state.Consumers
}

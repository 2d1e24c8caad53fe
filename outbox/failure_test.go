package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/outbox"
)

var errNo = errors.New("no")

// quick is a config that gives up soon.
func quick() outbox.RelayConfig {
	return outbox.RelayConfig{
		AttemptTimeout: time.Second, RetryDelay: time.Millisecond, RetryMaxDelay: 20 * time.Millisecond, Poll: 50 * time.Millisecond,
	}
}

// refusing answers with err for the events of one aggregate while it says so.
func refusing(aggregate string, on *atomic.Bool, err error) func(context.Context, *handler.Message) error {
	return func(_ context.Context, msg *handler.Message) error {
		if on.Load() && string(msg.Key) == aggregate {
			return err
		}
		return nil
	}
}

// state is what the view says of an aggregate's events, in order.
func (b *testBundle) states(t *testing.T, aggregate string) string {
	t.Helper()
	return query[string](t, b, `SELECT coalesce(string_agg(state, ' ' ORDER BY seq), '') FROM semel.events WHERE aggregateid = $1`, aggregate)
}

func (b *testBundle) awaitStates(t *testing.T, aggregate, want string) {
	t.Helper()
	require.Eventually(t, func() bool { return b.states(t, aggregate) == want }, deadline, 10*time.Millisecond, "aggregate %s: %s", aggregate, want)
}

// A failing event holds back its own aggregate and no other, and costs the
// others nothing: each of the other 99 of its batch is sent once.
func TestRelay_FailureHoldsItsAggregate(t *testing.T) {
	t.Parallel()

	for _, ordered := range []bool{true, false} {
		t.Run(fmt.Sprintf("ordered=%t", ordered), func(t *testing.T) {
			t.Parallel()

			b := setup(t)
			var broken atomic.Bool
			broken.Store(true)
			p := &recorder{ordered: ordered, answer: refusing("bad", &broken, errNo)}
			var events []outbox.Event
			for i := range 98 {
				events = append(events, order(fmt.Sprint(i), 1))
			}
			events = slices.Insert(events, 50, order("bad", 1), order("bad", 2))
			b.write(t, events...)
			b.relay(t, p, quick())

			b.awaitPublished(t, 98)
			require.Eventually(t, func() bool {
				return query[int](t, b, `SELECT attempts FROM semel.outbox WHERE aggregateid = 'bad' AND version = 1`) >= 3
			}, deadline, 10*time.Millisecond)
			require.Zero(t, query[int](t, b, `SELECT attempts FROM semel.outbox WHERE aggregateid = 'bad' AND version = 2`), "it was never tried")
			require.Equal(t, "no", query[string](t, b, `SELECT last_error FROM semel.outbox WHERE aggregateid = 'bad' AND version = 1`))

			broken.Store(false)
			b.awaitStates(t, "bad", "published published")
			requireOrder(t, p.messages(), 100)
			for _, m := range p.messages() {
				attempt, ok := m.Headers.First(outbox.HeaderAttempt)
				if string(m.Key) == "bad" && m.Version == 1 {
					require.Regexp(t, `^[0-9]+$`, string(attempt))
				} else {
					require.False(t, ok, "a first attempt")
				}
			}
		})
	}
}

// What can never be published is shown to a person at once, and holds its
// aggregate until somebody has decided.
func TestRelay_Quarantine(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name   string
		decide string // by SQL, as the command line does
		want   string
		sent   int
	}{
		{"Retry", `UPDATE semel.outbox SET quarantined_at = NULL, next_attempt_at = clock_timestamp() WHERE version = 1 AND aggregateid = 'bad'`, "published published", 2},
		{"Discard", `UPDATE semel.outbox SET discarded_at = clock_timestamp() WHERE version = 1 AND aggregateid = 'bad'`, "discarded published", 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			b := setup(t)
			var broken atomic.Bool
			broken.Store(true)
			p := &recorder{ordered: true, answer: refusing("bad", &broken, handler.Permanent(errNo))}
			b.write(t, order("bad", 1), order("good", 1), order("bad", 2))
			told := make(chan outbox.Quarantined, 10)
			cfg := quick()
			cfg.OnQuarantine = func(_ context.Context, q outbox.Quarantined) { told <- q }
			relay := b.relay(t, p, cfg)

			b.awaitStates(t, "bad", "quarantined pending")
			b.awaitStates(t, "good", "published")
			q := <-told
			require.Equal(t, int64(1), q.Message.Version)
			require.Equal(t, 1, q.Attempts)
			require.ErrorIs(t, q.Err, errNo)
			require.Equal(t, outbox.KindStats{Sent: 1, Failed: 1, Quarantined: 1}, relay.Stats().Kinds["order"])

			broken.Store(false)
			b.exec(t, tt.decide)
			b.awaitStates(t, "bad", tt.want)
			require.Len(t, p.messages(), 1+tt.sent)
			require.Empty(t, told, "told once")
		})
	}
}

// By policy the aggregate goes on without the event.
func TestRelay_QuarantineContinue(t *testing.T) {
	t.Parallel()

	b := setup(t)
	p := &recorder{ordered: true, answer: func(_ context.Context, m *handler.Message) error {
		if m.Version == 1 {
			return handler.Permanent(errNo)
		}
		return nil
	}}
	b.write(t, order("1", 1), order("1", 2), order("1", 3))
	cfg := quick()
	cfg.Quarantine = outbox.Continue
	b.relay(t, p, cfg)

	b.awaitStates(t, "1", "quarantined published published")
}

// The maximum age counts from the first failed attempt, and only a failed
// attempt ends it.
func TestRelay_MaxAge(t *testing.T) {
	t.Parallel()

	b := setup(t)
	var broken atomic.Bool
	broken.Store(true)
	p := &recorder{ordered: true, answer: refusing("bad", &broken, errNo)}
	b.write(t, order("bad", 1))
	b.exec(t, `UPDATE semel.outbox SET created_at = clock_timestamp() - interval '30 days'`)
	cfg := quick()
	cfg.MaxAge = cfg.AttemptTimeout + cfg.RetryMaxDelay
	b.relay(t, p, cfg)

	b.awaitStates(t, "bad", "quarantined")
	require.Greater(t, query[int](t, b, `SELECT attempts FROM semel.outbox`), 3, "attempts before, spread over the maximum age")
	require.GreaterOrEqual(t, query[float64](t, b, `SELECT extract(epoch FROM quarantined_at - first_failed_at)::float8 FROM semel.outbox`), 0.9)
}

func TestRelay_Validate(t *testing.T) {
	t.Parallel()

	b := setup(t)
	p := &recorder{ordered: true}
	b.write(t, order("1", 1), order("1", 2), order("2", 1))
	cfg := quick()
	cfg.Validate = func(m *handler.Message) error {
		if string(m.Key) == "1" && m.Version == 1 {
			return handler.Permanent(errors.New("schema version 9 is not known"))
		}
		return nil
	}
	b.relay(t, p, cfg)

	b.awaitStates(t, "1", "quarantined pending")
	b.awaitStates(t, "2", "published")
	require.Equal(t, "schema version 9 is not known", query[string](t, b, `SELECT last_error FROM semel.outbox WHERE quarantined_at IS NOT NULL`))
	require.Len(t, p.messages(), 1)
}

// Case O6: the broker stalls, or says that it is away. A relay that published in
// the transaction that read the events held its locks all that while, and spent
// their attempts (MassTransit#4299; sentry#67045). No transaction is open, no
// attempt is spent, and nothing is lost or out of order afterwards.
func TestRelay_Outage(t *testing.T) {
	t.Parallel()

	answers := map[string]func(context.Context) error{
		"Unavailable": func(context.Context) error { return handler.Unavailable(errNo) },
		"Silent": func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		},
	}
	for name, answer := range answers {
		for _, ordered := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/ordered=%t", name, ordered), func(t *testing.T) {
				t.Parallel()

				b := setup(t)
				var away atomic.Bool
				away.Store(true)
				p := &recorder{ordered: ordered, answer: func(ctx context.Context, _ *handler.Message) error {
					if away.Load() {
						return answer(ctx)
					}
					return nil
				}}
				var events []outbox.Event
				for v := range int64(10) {
					for a := range 30 {
						events = append(events, order(fmt.Sprint(a), v+1))
					}
				}
				b.write(t, events...)
				cfg := quick()
				cfg.AttemptTimeout = 50 * time.Millisecond
				log := &logbook{}
				cfg.Logger = log.logger()
				relay := b.relay(t, p, cfg)

				require.Eventually(t, func() bool { return relay.Stats().Outages >= 5 }, deadline, 10*time.Millisecond)
				require.Eventually(t, func() bool { return strings.Contains(log.String(), "the broker is left alone") }, deadline, 10*time.Millisecond)
				require.Zero(t, query[int](t, b, `SELECT count(*)::int FROM pg_stat_activity WHERE state LIKE 'idle in transaction%' AND query LIKE '%' || $1 || '%'`, b.Schema), "no transaction is open")
				away.Store(false)

				b.awaitPublished(t, 300)
				requireOrder(t, p.messages(), 300)
				require.Zero(t, query[int](t, b, `SELECT sum(attempts)::int FROM semel.outbox`), "no attempt is spent")
				require.Contains(t, log.String(), "relay publishes again")
				require.Equal(t, 1, strings.Count(log.String(), "the broker is left alone"), "once for an outage")
			})
		}
	}
}

// Part of the broker is away: what goes there waits, the rest goes on, no
// attempt is spent.
func TestRelay_PartOfTheBrokerAway(t *testing.T) {
	t.Parallel()

	b := setup(t)
	var away atomic.Bool
	away.Store(true)
	p := &recorder{ordered: true, answer: refusing("far", &away, handler.Unavailable(errNo))}
	b.relay(t, p, quick())
	b.write(t, order("near", 1), order("far", 1), order("near", 2), order("far", 2))

	b.awaitStates(t, "near", "published published")
	b.write(t, order("near", 3))
	b.awaitStates(t, "near", "published published published")
	away.Store(false)
	b.awaitStates(t, "far", "published published")
	requireOrder(t, p.messages(), 5)
	require.Zero(t, query[int](t, b, `SELECT sum(attempts)::int FROM semel.outbox`))
}

// A secret that was rotated, or a topic that nobody made, must not fill the
// quarantine: after a few the relay waits, and other topics go on.
func TestRelay_ManyPermanents(t *testing.T) {
	t.Parallel()

	b := setup(t)
	var refused atomic.Bool
	refused.Store(true)
	p := &recorder{ordered: true, answer: func(_ context.Context, m *handler.Message) error {
		if refused.Load() && m.Origin.Topic == "order" {
			return handler.Permanent(errNo)
		}
		return nil
	}}
	var events []outbox.Event
	for i := range 200 {
		events = append(events, order(fmt.Sprint(i), 1))
	}
	other := outbox.Event{AggregateType: "invoice", AggregateID: "1", Type: "InvoiceSent", Version: 1}
	b.write(t, append(events, other)...)
	cfg := quick()
	cfg.Batch = 7
	relay := b.relay(t, p, cfg)

	require.Eventually(t, func() bool { return relay.Stats().Kinds["invoice"].Sent == 1 }, deadline, 10*time.Millisecond)
	require.Eventually(t, func() bool { return relay.Stats().Outages >= 5 }, deadline, 10*time.Millisecond)
	quarantined := query[int](t, b, `SELECT count(*)::int FROM semel.outbox WHERE quarantined_at IS NOT NULL`)
	require.GreaterOrEqual(t, quarantined, 10)
	require.Less(t, quarantined, 20)

	refused.Store(false)
	b.awaitPublished(t, 201-quarantined)
}

// Case O8: topic A is slow, topic B fast. B is not delayed by A
// (transaction-outbox#788).
func TestRelay_SlowTopic(t *testing.T) {
	t.Parallel()

	for _, ordered := range []bool{true, false} {
		t.Run(fmt.Sprintf("ordered=%t", ordered), func(t *testing.T) {
			t.Parallel()

			b := setup(t)
			release := make(chan struct{})
			p := &recorder{ordered: ordered, answer: func(ctx context.Context, m *handler.Message) error {
				if m.Origin.Topic == "slow" {
					select {
					case <-release:
					case <-ctx.Done():
						return ctx.Err()
					}
				}
				return nil
			}}
			var events []outbox.Event
			for i := range 5000 {
				events = append(events, outbox.Event{AggregateType: "slow", AggregateID: fmt.Sprint(i), Type: "T", Version: 1})
			}
			for i := range 300 {
				events = append(events, outbox.Event{AggregateType: "fast", AggregateID: fmt.Sprint(i), Type: "T", Version: 1})
			}
			b.write(t, events...)
			cfg := quick()
			cfg.AttemptTimeout, cfg.Lease = deadline, 3*deadline
			cfg.MaxAge = 24 * time.Hour
			relay := b.relay(t, p, cfg)

			require.Eventually(t, func() bool { return relay.Stats().Kinds["fast"].Sent == 300 }, deadline, 10*time.Millisecond)
			require.Zero(t, relay.Stats().Kinds["slow"].Sent, "all that while nothing of the slow one was confirmed")
			close(release)
			b.awaitPublished(t, 5300)
			requireOrder(t, p.messages(), 5300)
		})
	}
}

// Case O8: the slow topic has a backlog that a relay does not keep in memory. What
// is written behind it for another topic goes out all the same, while the slow
// one stands and while it comes along, and of both nothing is lost or overtaken.
func TestRelay_SlowTopicWithALongBacklog(t *testing.T) {
	t.Parallel()

	const aggregates, versions, rounds = 10_000, 3, 30
	for _, ordered := range []bool{true, false} {
		t.Run(fmt.Sprintf("ordered=%t", ordered), func(t *testing.T) {
			t.Parallel()

			b := setup(t)
			for v := range int64(versions) {
				var events []outbox.Event
				for i := range aggregates {
					events = append(events, outbox.Event{AggregateType: "slow", AggregateID: fmt.Sprint(i), Type: "T", Version: v + 1})
				}
				b.write(t, events...)
			}
			tickets := make(chan struct{}) // one lets one event of the slow topic pass
			p := &recorder{ordered: ordered, answer: func(ctx context.Context, m *handler.Message) error {
				if m.Origin.Topic == "slow" {
					select {
					case <-tickets:
					case <-ctx.Done():
						return ctx.Err()
					}
				}
				return nil
			}}
			cfg := quick()
			cfg.AttemptTimeout, cfg.Lease = deadline, 3*deadline
			cfg.MaxAge = 24 * time.Hour
			relay := b.relay(t, p, cfg)

			fast := func(version int) {
				b.write(t, outbox.Event{AggregateType: "fast", AggregateID: "x", Type: "T", Version: int64(version)})
				require.Eventually(t, func() bool { return relay.Stats().Kinds["fast"].Sent == int64(version) }, deadline, time.Millisecond)
			}
			fast(1)
			require.Zero(t, relay.Stats().Kinds["slow"].Sent)
			for round := range rounds {
				for range 100 {
					tickets <- struct{}{}
				}
				fast(round + 2)
			}
			require.Less(t, relay.Stats().Kinds["slow"].Sent, int64(aggregates), "the backlog is still long")
			close(tickets)
			b.awaitPublished(t, aggregates*versions+rounds+1)
			requireOrder(t, p.messages(), aggregates*versions+rounds+1)
		})
	}
}

// behindFailed refuses the first event of each aggregate for good, and says of
// those behind it that they cannot be sent now.
type behindFailed struct{}

func (behindFailed) KeepsOrder() bool { return true }

func (behindFailed) Publish(_ context.Context, msgs []*handler.Message) []error {
	errs := make([]error, len(msgs))
	for i, m := range msgs {
		if errs[i] = handler.Unavailable(errNo); m.Version == 1 {
			errs[i] = handler.Permanent(errNo)
		}
	}
	return errs
}

// The answers for events behind a refused one say nothing of the broker: it is
// not taken for away.
func TestRelay_BehindARefusedEvent(t *testing.T) {
	t.Parallel()

	b := setup(t)
	for i := range 5 {
		b.write(t, order(fmt.Sprint(i), 1), order(fmt.Sprint(i), 2))
	}
	log := &logbook{}
	cfg := quick()
	cfg.Batch, cfg.Logger = 2, log.logger()
	relay := b.relay(t, behindFailed{}, cfg)

	require.Eventually(t, func() bool { return relay.Stats().Kinds["order"].Quarantined == 5 }, deadline, tick)
	require.Zero(t, relay.Stats().Outages)
	require.NotContains(t, log.String(), "the broker is left alone")
}

package outbox_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/outbox"
)

// logbook keeps what was logged.
type logbook struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logbook) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

func (l *logbook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logbook) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// Case O1: transaction A writes event 1 and stays open, B writes 2 and commits,
// the relay passes, A commits. A relay that remembers the last number it read
// never publishes event 1 (kamu-cli#1398, eventuous#222).
func TestRelay_LateCommit(t *testing.T) {
	t.Parallel()

	b := setup(t)
	p := &recorder{ordered: true}
	b.relay(t, p, quick())
	a := b.begin(t)
	require.NoError(t, b.writer.Write(t.Context(), a, order("1", 1)))
	b.write(t, order("2", 1))
	b.awaitPublished(t, 1)

	require.NoError(t, a.Commit(t.Context()))

	b.awaitPublished(t, 2)
	require.Len(t, p.messages(), 2)
}

// Case O2: two relays, one aggregate, and sends that are slow or fail. With
// SKIP LOCKED the second relay sends what comes after (kafkaflow-contrib#24).
// Case O5: of those that do not fail each is sent once.
func TestRelay_TwoRelaysKeepOrder(t *testing.T) {
	t.Parallel()

	for _, ordered := range []bool{true, false} {
		t.Run(fmt.Sprintf("ordered=%t", ordered), func(t *testing.T) {
			t.Parallel()

			b := setup(t)
			var n atomic.Int64
			p := &recorder{ordered: ordered, answer: func(context.Context, *handler.Message) error {
				if n.Add(1)%7 == 0 {
					return errNo
				}
				return nil
			}}
			for range 3 {
				b.relay(t, p, quick())
			}
			const aggregates, each = 20, 30
			for v := range int64(each) {
				for a := range aggregates {
					b.write(t, order(fmt.Sprint(a), v+1))
				}
			}

			b.awaitPublished(t, aggregates*each)
			requireOrder(t, p.messages(), aggregates*each)
		})
	}
}

// A backlog of one aggregate behind a failing event does not keep the relay
// from others that came later.
func TestRelay_BacklogBehindAFailure(t *testing.T) {
	t.Parallel()

	b := setup(t)
	var broken atomic.Bool
	broken.Store(true)
	p := &recorder{ordered: true, answer: refusing("bad", &broken, errNo)}
	var events []outbox.Event
	for v := range int64(3000) {
		events = append(events, order("bad", v+1))
	}
	b.write(t, append(events, order("good", 1))...)
	b.relay(t, p, quick())

	b.awaitStates(t, "good", "published")
	broken.Store(false)
	b.awaitPublished(t, 3001)
	requireOrder(t, p.messages(), 3001)
}

// Relays come and go; each event is published once, in order.
func TestRelay_ComeAndGo(t *testing.T) {
	t.Parallel()

	b := setup(t)
	p := &recorder{ordered: true}
	const aggregates, each = 40, 50
	done := make(chan struct{})
	go func() {
		defer close(done)
		for v := range int64(each) {
			var events []outbox.Event
			for a := range aggregates {
				events = append(events, order(fmt.Sprint(a), v+1))
			}
			b.write(t, events...)
		}
	}()
	first := b.relay(t, p, quick())
	second := b.relay(t, p, quick())
	b.awaitLeases(t, 32, 32)
	first.stop()
	third, fourth := b.relay(t, p, quick()), b.relay(t, p, quick())
	b.awaitLeases(t, 21, 21, 22)
	second.stop()
	third.stop()
	b.awaitLeases(t, 64)
	<-done

	b.awaitPublished(t, aggregates*each)
	fourth.stop()
	requireOrder(t, p.messages(), aggregates*each)
}

// awaitLeases waits until so many relays have so many leases.
func (b *testBundle) awaitLeases(t *testing.T, want ...int) {
	t.Helper()
	require.Eventually(t, func() bool {
		got := query[[]int](t, b, `SELECT coalesce(array_agg(n ORDER BY n), '{}') FROM (
			SELECT count(*)::int AS n FROM semel.relay_leases WHERE owner IS NOT NULL GROUP BY owner) AS g`)
		return fmt.Sprint(got) == fmt.Sprint(want)
	}, deadline, 10*time.Millisecond, "leases %v", want)
}

// By choice the rows of what was published are deleted at once.
func TestRelay_DoneDelete(t *testing.T) {
	t.Parallel()

	b := setup(t)
	p := &recorder{ordered: true, answer: func(_ context.Context, m *handler.Message) error {
		if m.Version == 2 && string(m.Key) == "2" {
			return handler.Permanent(errNo)
		}
		return nil
	}}
	b.write(t, order("1", 1), order("2", 1), order("2", 2), order("1", 2))
	cfg := quick()
	cfg.Done = outbox.Delete
	relay := b.relay(t, p, cfg)

	require.Eventually(t, func() bool { return relay.Stats().Kinds["order"].Sent == 3 }, deadline, tick)
	b.awaitStates(t, "2", "quarantined")
	require.Equal(t, 1, query[int](t, b, `SELECT count(*)::int FROM semel.outbox`))
	require.Zero(t, relay.Stats().Stale)
}

// Nothing is noted as published while the publisher has not answered. An event
// that is noted and then lost with the broker, or the process, is never sent
// again.
func TestRelay_MarksAfterTheConfirm(t *testing.T) {
	t.Parallel()

	b := setup(t)
	asked, enough := make(chan struct{}, 1), make(chan struct{})
	p := &recorder{ordered: true, answer: func(ctx context.Context, m *handler.Message) error {
		if m.Origin.Topic == "order" {
			asked <- struct{}{}
			select {
			case <-enough:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	}}
	cfg := quick()
	cfg.AttemptTimeout, cfg.Lease, cfg.MaxAge = deadline, 3*deadline, 24*time.Hour
	relay := b.relay(t, p, cfg)
	t.Cleanup(func() { close(enough) }) // before the relay is stopped
	b.write(t, order("1", 1))
	<-asked
	b.write(t, outbox.Event{AggregateType: "invoice", AggregateID: "1", Type: "InvoiceSent", Version: 1})

	require.Eventually(t, func() bool { return relay.Stats().Kinds["invoice"].Sent == 1 }, deadline, tick)
	require.Equal(t, "pending published", query[string](t, b, `SELECT string_agg(state, ' ' ORDER BY seq) FROM semel.events`))
}

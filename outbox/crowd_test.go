package outbox_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/outbox"
)

// Case O8: nothing of one aggregate type can be published, its exchange has no
// binding. Many aggregates wait for it; those of other types go on, and it does
// too once somebody has mended it.
func TestRelay_CrowdOfOneType(t *testing.T) {
	t.Parallel()

	const aggregates = 5000
	for _, ordered := range []bool{true, false} {
		t.Run(fmt.Sprintf("ordered=%t", ordered), func(t *testing.T) {
			t.Parallel()

			b := setup(t)
			var mended atomic.Bool
			p := &recorder{ordered: ordered, answer: func(_ context.Context, m *handler.Message) error {
				if m.Origin.Topic == "order" && !mended.Load() {
					return errNo
				}
				return nil
			}}
			var events []outbox.Event
			for v := range int64(2) {
				for i := range aggregates {
					events = append(events, order(fmt.Sprint(i), v+1))
				}
			}
			b.write(t, events...)
			relay := b.relay(t, p, quick())
			require.Eventually(t, func() bool { return relay.Stats().Kinds["order"].Failed >= 100 }, deadline, tick)
			b.write(t, outbox.Event{AggregateType: "invoice", AggregateID: "1", Type: "InvoiceSent", Version: 1})
			require.Eventually(t, func() bool { return relay.Stats().Kinds["invoice"].Sent == 1 }, deadline, tick)
			require.Less(t, query[int](t, b, `SELECT count(*)::int FROM semel.outbox WHERE attempts > 0`), 1000)

			mended.Store(true)
			b.awaitPublished(t, 2*aggregates+1)
			requireOrder(t, p.messages(), 2*aggregates+1)
		})
	}
}

// A publisher that sends only so many at once is never given more: what waits in
// it would spend the time of its attempt.
func TestRelay_LimitedPublisher(t *testing.T) {
	t.Parallel()

	const atOnce, aggregates = 3, 60
	b := setup(t)
	var out, peak atomic.Int64
	p := limited{atOnce: atOnce, recorder: &recorder{answer: func(context.Context, *handler.Message) error {
		defer out.Add(-1)
		for n := out.Add(1); ; {
			if old := peak.Load(); n <= old || peak.CompareAndSwap(old, n) {
				break
			}
		}
		time.Sleep(time.Millisecond) // an endpoint takes its time
		return nil
	}}}
	var events []outbox.Event
	for i := range aggregates {
		events = append(events, order(fmt.Sprint(i), 1))
	}
	b.write(t, events...)
	b.relay(t, p, quick())
	b.awaitPublished(t, aggregates)
	require.LessOrEqual(t, peak.Load(), int64(atOnce))
	require.Len(t, p.messages(), aggregates)
}

// limited is a recorder that sends only so many at once.
type limited struct {
	*recorder
	atOnce int
}

func (p limited) AtOnce() int { return p.atOnce }

package outbox_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

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

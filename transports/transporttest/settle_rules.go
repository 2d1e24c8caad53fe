package transporttest

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
)

func settleRules() []rule {
	return []rule{
		{
			name:     "OrderWithinKey",
			sentence: "Messages of one key arrive at a member in the order they were published.",
			needs:    "Ordered",
			check:    checkOrderWithinKey,
		},
		{
			name:     "SettledIsOver",
			sentence: "A message that is settled does not come again after a clean stop.",
			check:    checkSettledIsOver,
		},
		{
			name:     "SettledBeforeDeliverReturns",
			sentence: "Settled may be called before Deliver returns.",
			check:    checkSettledBeforeDeliverReturns,
		},
		{
			name:     "SettledFromAnyGoroutine",
			sentence: "Settled and Returned may be called from any goroutine, in any order.",
			check:    checkSettledFromAnyGoroutine,
		},
		{
			name:     "ReturnedComesAgain",
			sentence: "A message that is returned comes again.",
			check:    checkReturnedComesAgain,
		},
		{
			name:     "RefusedComesAgain",
			sentence: "A message that the sink did not take is not lost.",
			check:    checkRefusedComesAgain,
		},
		{
			name:     "UnsettledComesAgain",
			sentence: "A message that was not settled when its source died comes again.",
			needs:    "Abort",
			check:    checkUnsettledComesAgain,
		},
		{
			name:     "LaterSettledKeepsEarlier",
			sentence: "Settling a message acknowledges no other: an earlier one that was not settled when its source died comes again.",
			needs:    "Abort",
			check:    checkLaterSettledKeepsEarlier,
		},
	}
}

func checkOrderWithinKey(t *testing.T, b *bundle) {
	const keys, each = 5, 21
	for i := range keys * each { // three of one key, then three of the next
		b.publish(t, &handler.Message{ID: fmt.Sprintf("evt_%d", i), Key: fmt.Appendf(nil, "key_%d", i/3%keys), Version: int64(i + 1)})
	}
	m := b.join(t, SinkConfig{})

	last := map[string]int64{}
	for _, msg := range m.collect(t, keys*each) {
		require.Greater(t, msg.Version, last[string(msg.Key)], "the order of %s", msg.Key)
		last[string(msg.Key)] = msg.Version
	}
}

func checkSettledIsOver(t *testing.T, b *bundle) {
	b.publish(t, numbered(10)...)
	m := b.join(t, SinkConfig{})
	m.collect(t, 10)
	m.stop(t)

	b.requireNothingLeft(t)
}

func checkSettledBeforeDeliverReturns(t *testing.T, b *bundle) {
	msgs := numbered(10)
	b.publish(t, msgs...)
	m := b.join(t, SinkConfig{Settle: true})
	awaitIDs(t, b, ids(msgs), m.sink)
	m.stop(t)

	b.requireNothingLeft(t)
}

func checkSettledFromAnyGoroutine(t *testing.T, b *bundle) {
	const n = 30
	msgs := numbered(n)
	b.publish(t, msgs...)
	m := b.join(t, SinkConfig{})
	var deliveries []*handler.Delivery
	for range n {
		deliveries = append(deliveries, m.next(t))
	}

	var wg sync.WaitGroup
	for i, d := range deliveries {
		wg.Go(func() {
			if i%5 == 0 {
				d.Returned(errOnceMore)
			} else {
				d.Settled()
			}
		})
	}
	wg.Wait()
	m.collect(t, n/5)
	m.stop(t)

	require.Subset(t, ids(m.sink.Arrived()), ids(msgs))
	b.requireNothingLeft(t)
}

func checkReturnedComesAgain(t *testing.T, b *bundle) {
	msgs := numbered(3)
	b.publish(t, msgs...)
	m := b.join(t, SinkConfig{})
	var first []*handler.Message
	for range msgs {
		first = append(first, m.next(t).Message)
	}
	m.sink.ReturnAll(errOnceMore)

	again := m.collect(t, len(msgs))

	require.ElementsMatch(t, ids(msgs), ids(first))
	require.ElementsMatch(t, ids(msgs), ids(again))
}

func checkRefusedComesAgain(t *testing.T, b *bundle) {
	msgs := numbered(10)
	b.publish(t, msgs...)
	m := b.join(t, SinkConfig{Limit: 1})
	first := m.next(t)
	m.sink.AwaitBlocked(t)
	m.sink.Refuse(ErrRefused) // the second one is inside Deliver
	first.Settled()
	m.stop(t)

	want := make([]string, 0, len(msgs))
	for _, id := range ids(msgs) {
		if id != first.Message.ID {
			want = append(want, id)
		}
	}
	b.requireOnly(t, want)
}

func checkUnsettledComesAgain(t *testing.T, b *bundle) {
	msgs := numbered(3)
	b.publish(t, msgs...)
	m := b.join(t, SinkConfig{})
	for range msgs {
		m.next(t)
	}
	m.abort(t)

	next := b.join(t, SinkConfig{Settle: true})
	awaitIDs(t, b, ids(msgs), next.sink)
	next.stop(t)
}

func checkLaterSettledKeepsEarlier(t *testing.T, b *bundle) {
	for i := range 3 {
		b.publish(t, &handler.Message{ID: fmt.Sprintf("evt_%d", i), Key: []byte("one key")})
	}
	m := b.join(t, SinkConfig{})
	first, second, third := m.next(t), m.next(t), m.next(t)
	third.Settled()
	second.Settled()
	m.abort(t)

	next := b.join(t, SinkConfig{Settle: true})
	awaitIDs(t, b, []string{first.Message.ID}, next.sink)
	next.stop(t)
}

// requireOnly requires that a new member is given the messages with these ids
// and nothing else.
func (b *bundle) requireOnly(t *testing.T, want []string) {
	t.Helper()
	m := b.join(t, SinkConfig{})
	require.ElementsMatch(t, want, ids(m.collect(t, len(want))))
	m.sink.RequireQuiet(t)
	m.stop(t)
}

// requireNothingLeft requires that everything published so far is over. It
// publishes some more, with several keys so that they are behind the others
// wherever those are: they alone must arrive.
func (b *bundle) requireNothingLeft(t *testing.T) {
	t.Helper()
	msgs := make([]*handler.Message, 20)
	for i := range msgs {
		msgs[i] = &handler.Message{ID: fmt.Sprintf("after_%d", i), Key: fmt.Appendf(nil, "key_%d", i)}
	}
	b.publish(t, msgs...)
	b.requireOnly(t, ids(msgs))
}

func numbered(n int) []*handler.Message {
	msgs := make([]*handler.Message, n)
	for i := range msgs {
		msgs[i] = &handler.Message{ID: fmt.Sprintf("evt_%d", i), Key: fmt.Appendf(nil, "key_%d", i)}
	}
	return msgs
}

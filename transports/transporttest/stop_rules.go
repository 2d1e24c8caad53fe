package transporttest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
)

func stopRules() []rule {
	return []rule{
		{
			name:     "StopWaitsForWhatIsOut",
			sentence: "When its context ends, Run waits for every delivery it handed out, acknowledges what is settled and returns nil.",
			check:    checkStopWaitsForWhatIsOut,
		},
		{
			name:     "ReturnedWhileStopping",
			sentence: "A message that is returned while its source stops comes again, also when later ones were settled.",
			check:    checkReturnedWhileStopping,
		},
		{
			name:     "StopWhileTheSinkIsFull",
			sentence: "When its context ends while Deliver blocks, Run returns and what was not taken comes again.",
			check:    checkStopWhileTheSinkIsFull,
		},
		{
			name:     "NothingAfterRun",
			sentence: "Nothing is delivered after Run has returned.",
			check:    checkNothingAfterRun,
		},
		{
			name:     "RunAgain",
			sentence: "After a clean stop a new source goes on where the one before stopped.",
			check:    checkRunAgain,
		},
		{
			name:     "StopAtRest",
			sentence: "Run returns nil when its context ends while there is nothing to do, or before it began.",
			check:    checkStopAtRest,
		},
	}
}

func checkStopWaitsForWhatIsOut(t *testing.T, b *bundle) {
	b.publish(t, numbered(2)...)
	m := b.join(t, SinkConfig{})
	first, second := m.next(t), m.next(t)
	m.cancel()
	first.Settled()
	require.False(t, m.hasEnded(quiet), "Run returned while a delivery was out")
	second.Settled()
	m.stop(t)

	b.requireNothingLeft(t)
}

func checkReturnedWhileStopping(t *testing.T, b *bundle) {
	b.publish(t, &handler.Message{ID: "evt_1", Key: []byte("k")}, &handler.Message{ID: "evt_2", Key: []byte("k")})
	m := b.join(t, SinkConfig{})
	first, second := m.next(t), m.next(t)
	m.cancel()
	second.Settled()
	first.Returned(errOnceMore)
	m.stop(t)

	next := b.join(t, SinkConfig{Settle: true})
	awaitIDs(t, b, []string{first.Message.ID}, next.sink)
	next.stop(t)
}

func checkStopWhileTheSinkIsFull(t *testing.T, b *bundle) {
	msgs := numbered(5)
	b.publish(t, msgs...)
	m := b.join(t, SinkConfig{Limit: 1})
	first := m.next(t)
	m.sink.AwaitBlocked(t)
	m.cancel()
	first.Returned(errOnceMore)
	m.stop(t)

	b.requireOnly(t, ids(msgs))
}

func checkNothingAfterRun(t *testing.T, b *bundle) {
	b.publish(t, numbered(1)...)
	m := b.join(t, SinkConfig{})
	m.collect(t, 1)
	m.stop(t)
	b.publish(t, &handler.Message{ID: "evt_after"})

	m.sink.RequireQuiet(t)
	m.sink.RequireNoFault(t)
}

func checkRunAgain(t *testing.T, b *bundle) {
	for _, id := range []string{"evt_1", "evt_2", "evt_3"} {
		b.publish(t, &handler.Message{ID: id})
		m := b.join(t, SinkConfig{})
		require.Equal(t, []string{id}, ids(m.collect(t, 1)))
		m.stop(t)
	}
}

func checkStopAtRest(t *testing.T, b *bundle) {
	m := b.join(t, SinkConfig{})
	m.cancel()
	m.stop(t)

	b.publish(t, numbered(1)...)
	m = b.join(t, SinkConfig{})
	m.collect(t, 1)
	m.stop(t)
}

package rabbitmq_test

import (
	"fmt"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/transports/rabbitmq"
	"github.com/semel-go/semel/transports/transporttest"
)

// Case Q1: of two deliveries the second was done first and acknowledged
// "multiple", which acknowledged the first with it; then the process died and
// the first was lost (wolverine).
func TestSource_LaterSettledKeepsEarlier(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.publish(t, text("first"), text("second"))
	l := &line{}
	config := b.sourceConfig()
	config.Dial = l.dial
	dying := run(t, config, transporttest.SinkConfig{})
	first := dying.next(t, "first")
	dying.next(t, "second").Settled()
	require.Eventually(t, func() bool { return len(l.acknowledged()) == 1 }, patience, tick)
	l.cut(true)
	requireRevoked(t, first)

	heir := run(t, b.sourceConfig(), transporttest.SinkConfig{})
	again := heir.next(t, "first")
	require.True(t, again.Message.Origin.Redelivered)
	again.Settled()
	heir.stop(t)
	b.requireEmpty(t)
}

// Case Q2: a process died again and again with 200 deliveries out
// (wolverine#4162).
func TestSource_DeathsWithAFullPrefetch(t *testing.T) {
	t.Parallel()

	const prefetch, messages, deaths = 200, 500, 5
	b := setup(t)
	for i := range messages {
		b.publish(t, text(fmt.Sprint(i)))
	}
	settled := map[string]int{}
	for range deaths {
		l := &line{}
		config := b.sourceConfig()
		config.Dial = l.dial
		dying := run(t, config, transporttest.SinkConfig{})
		var out []*handler.Delivery
		for range prefetch {
			out = append(out, dying.sink.Next(t))
		}
		require.Equal(t, prefetch, dying.source.Stats().InFlight)
		for i := range 20 { // every tenth, from the end; its ack may or may not arrive
			d := out[len(out)-1-10*i]
			settled[d.Message.ID]++
			d.Settled()
		}
		l.cut(true)
	}
	last := run(t, b.sourceConfig(), transporttest.SinkConfig{})
	require.Eventually(t, func() bool {
		for last.sink.Out() > 0 {
			d := last.sink.Next(t)
			settled[d.Message.ID]++
			d.Settled()
		}
		return len(settled) == messages
	}, patience, tick, "messages were lost")
	last.stop(t)
	b.requireEmpty(t)
}

// Case Q4: a body that cannot be decoded, without an id and a type, was
// redelivered for ever (wolverine#2383). The source hands it on as it came; once
// the engine has settled it, it is gone.
func TestSource_BareMessage(t *testing.T) {
	t.Parallel()

	b := setup(t)
	body := []byte{0xff, 0x00, '{'}
	b.publish(t, amqp.Publishing{Body: body}, amqp.Publishing{})
	r := run(t, b.sourceConfig(), transporttest.SinkConfig{})

	for _, want := range [][]byte{body, {}} {
		d := r.sink.Next(t)
		require.Equal(t, &handler.Message{
			Payload: want,
			Origin:  handler.Origin{Transport: "rabbitmq", Topic: b.queue, RoutingKey: b.queue},
		}, d.Message)
		d.Settled()
	}
	r.stop(t)
	b.requireEmpty(t)
}

func TestSource_PauseGivesBackWhatIsNotStarted(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.publish(t, text("running"), text("waiting"), text("offered"), text("buffered"))
	l := &line{}
	config := b.sourceConfig()
	config.Dial = l.dial
	r := run(t, config, transporttest.SinkConfig{Limit: 2}) // the third is offered to it, the fourth waits in the client
	started, waiting := r.next(t, "running"), r.next(t, "waiting")
	r.sink.AwaitBlocked(t)

	r.source.Pause()
	requireRevoked(t, waiting)
	waiting.Returned(errGiveBack)
	r.await(t, rabbitmq.Paused)
	require.Eventually(t, func() bool { return b.ready(t) == 3 }, patience, tick, "what was not started is not back in the queue")
	require.Equal(t, 1, r.source.Stats().InFlight)
	started.Settled() // on the channel it came from, which is still there

	r.source.Resume()
	for _, id := range []string{"waiting", "offered", "buffered"} {
		d := r.next(t, id)
		select {
		case <-d.Revoked:
			require.Fail(t, "a delivery after Resume is revoked")
		default:
		}
		d.Settled()
	}
	r.stop(t)
	require.Equal(t, 1, l.dialled(), "the connection was not kept")
	b.requireEmpty(t)
}

func TestSource_ReturnsDoNotSpin(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.publish(t, text("hot"))
	config := b.sourceConfig()
	config.Prefetch = 1
	r := run(t, config, transporttest.SinkConfig{})

	returns := 0
	for end := time.Now().Add(time.Second); time.Now().Before(end); returns++ {
		r.next(t, "hot").Returned(errGiveBack)
	}

	require.Greater(t, returns, 2, "a message that is returned must come again")
	require.Less(t, returns, 100, "a message that is always returned is spinning")
}

func TestSource_RunsOnce(t *testing.T) {
	t.Parallel()

	b := setup(t)
	r := run(t, b.sourceConfig(), transporttest.SinkConfig{})
	r.await(t, rabbitmq.Consuming)

	err := r.source.Run(t.Context(), r.sink)

	require.ErrorContains(t, err, "running already")
	r.stop(t)
	require.Equal(t, rabbitmq.Stopped, r.source.Stats().State)
}

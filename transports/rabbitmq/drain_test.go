package rabbitmq_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/transports/rabbitmq"
	"github.com/semel-go/semel/transports/transporttest"
)

// Case Q8: Close while handlers ran hung for ever when the broker was away
// (go-rabbitmq#151, go-rabbitmq#174; watermill-amqp).
func TestSource_StopsWhileTheBrokerIs(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name  string
		fault func(*line)
	}{
		{name: "There", fault: func(*line) {}},
		{name: "Down", fault: func(l *line) { l.cut(true) }},
		{name: "Silent", fault: func(l *line) { l.each((*wire).blackHole) }},
		{name: "NotReading", fault: func(l *line) { l.each((*wire).stall) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			b := setup(t)
			l := &line{}
			config := b.sourceConfig()
			config.Dial = l.dial
			config.RequestTimeout = 200 * time.Millisecond
			r := run(t, config, transporttest.SinkConfig{})
			b.publish(t, text("running"), text("running too"))
			first, second := r.next(t, "running"), r.next(t, "running too")

			tt.fault(l)
			r.cancel()
			first.Settled()
			select {
			case err := <-r.result:
				require.Fail(t, "Run returned while a handler was running", "%v", err)
			case <-time.After(500 * time.Millisecond): // longer than it needs to give the connection up
			}
			ended := time.Now()
			second.Returned(errGiveBack)

			require.NoError(t, r.ended(t))
			require.Less(t, time.Since(ended), 5*time.Second)
			require.Equal(t, 0, r.source.Stats().InFlight)
		})
	}
}

func TestSource_DrainTimeout(t *testing.T) {
	t.Parallel()

	b := setup(t)
	config := b.sourceConfig()
	config.DrainTimeout = 50 * time.Millisecond
	r := run(t, config, transporttest.SinkConfig{})
	b.publish(t, text("never answered"))
	r.next(t, "never answered")

	r.cancel()
	err := r.ended(t)

	require.ErrorContains(t, err, "1 deliveries were neither settled nor returned within 50ms")
	require.Equal(t, 1, b.ready(t), "the message did not go back to the queue")
}

func TestSource_StopsWhileItConnects(t *testing.T) {
	t.Parallel()

	l := &line{down: true}
	config := rabbitmq.SourceConfig{URL: "amqp://nowhere.invalid", Queue: "q", Dial: l.dial, Logger: quietLogger()}
	r := run(t, config, transporttest.SinkConfig{})
	require.Eventually(t, func() bool { return l.dialled() > 1 }, patience, tick)
	require.Equal(t, rabbitmq.Connecting, r.source.Stats().State)

	r.stop(t)
}

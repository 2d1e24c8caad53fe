package rabbitmq_test

import (
	"context"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/transports/rabbitmq"
	"github.com/semel-go/semel/transports/transporttest"
)

// Something accepts the connection and never says a word. Publish waits no
// longer than it was told to, Close not at all.
func TestPublisher_BlackHole(t *testing.T) {
	t.Parallel()

	b := setup(t)
	l := &line{silent: true}
	p := b.newPublisher(t, rabbitmq.PublisherConfig{Dial: l.dial, ConnectTimeout: 50 * time.Millisecond})
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() { result <- publishOne(ctx, p, &handler.Message{ID: "a"}) }()
	require.Eventually(t, func() bool { return p.Stats().Failures > 1 }, patience, tick, "the publisher gave up")
	cancel()
	err := <-result

	require.ErrorContains(t, err, "no answer within 50ms")
	require.True(t, handler.IsUnavailable(err))
	require.ErrorIs(t, err, context.Canceled)
	b.requireEmpty(t)
}

// The same while the connect timeout is still far away.
func TestPublisher_CloseInABlackHole(t *testing.T) {
	t.Parallel()

	b := setup(t)
	l := &line{silent: true}
	p := b.newPublisher(t, rabbitmq.PublisherConfig{Dial: l.dial, ConnectTimeout: time.Hour})
	result := make(chan error, 1)
	go func() { result <- publishOne(context.WithoutCancel(t.Context()), p, &handler.Message{ID: "a"}) }()
	require.Eventually(t, func() bool { return l.dialled() == 1 }, patience, tick)

	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, p.Close(ctx))
	require.Error(t, <-result)
}

// A source that hangs in a black hole ends when it is told to.
func TestSource_StopsInABlackHole(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name  string
		fault func(*line) // when the consumer has a channel
	}{
		{name: "Connecting"},
		{name: "Declaring", fault: func(l *line) { l.each((*wire).blackHole) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			b := setup(t)
			l := &line{silent: tt.fault == nil}
			config := b.sourceConfig()
			config.Dial, config.ConnectTimeout, config.RequestTimeout = l.dial, time.Hour, time.Second
			reached := make(chan struct{}, 100)
			config.Declare = func(ch *amqp.Channel) error {
				tt.fault(l)
				reached <- struct{}{}
				_, err := ch.QueueDeclarePassive(b.queue, true, false, false, false, nil)
				return err
			}
			r := run(t, config, transporttest.SinkConfig{})
			if tt.fault == nil {
				require.Eventually(t, func() bool { return l.dialled() == 1 }, patience, tick)
			} else {
				<-reached
			}

			r.stop(t)
		})
	}
}

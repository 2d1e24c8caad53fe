package rabbitmq_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/transports/rabbitmq"
	"github.com/semel-go/semel/transports/transporttest"
)

// publishOne publishes one message and returns its result.
func publishOne(ctx context.Context, p *rabbitmq.Publisher, msg *handler.Message) error {
	return p.Publish(ctx, []*handler.Message{msg})[0]
}

// Case Q6: a message that no queue is bound for is confirmed all the same, and
// was taken for published (Brighter ADR 0063). It is told apart from its
// neighbours, also from one with the same id.
func TestPublisher_Unroutable(t *testing.T) {
	t.Parallel()

	b := setup(t)
	p := b.newPublisher(t, rabbitmq.PublisherConfig{RoutingKey: func(msg *handler.Message) string {
		if msg.Type == "lost" {
			return b.queue + "-nobody"
		}
		return b.queue
	}})
	var msgs []*handler.Message
	for range 50 {
		msgs = append(msgs, &handler.Message{ID: "a"}, &handler.Message{ID: "a", Type: "lost"}, &handler.Message{ID: "b", Type: "lost"})
	}

	errs := p.Publish(t.Context(), msgs)

	for i, err := range errs {
		if msgs[i].Type == "" {
			require.NoError(t, err, "message %d", i)
			continue
		}
		require.ErrorIs(t, err, rabbitmq.ErrUnroutable, "message %d", i)
		require.ErrorContains(t, err, "NO_ROUTE")
		require.False(t, handler.IsPermanent(err))
	}
	require.Equal(t, 50, b.ready(t))

	// Return and confirm come together where nothing is stored in between.
	for i := range msgs {
		msgs[i] = &handler.Message{Type: "lost"}
	}
	for i, err := range p.Publish(t.Context(), msgs) {
		require.ErrorIs(t, err, rabbitmq.ErrUnroutable, "message %d", i)
	}
}

// Case Q6: the broker refuses (nack), here because the queue is full. Unknown,
// never permanent.
func TestPublisher_Nack(t *testing.T) {
	t.Parallel()

	b := setup(t)
	_, err := b.channel.QueueDelete(b.queue, false, false, false)
	require.NoError(t, err)
	b.declare(t, amqp.Table{"x-max-length": int32(1), "x-overflow": "reject-publish"})
	p := b.newPublisher(t, rabbitmq.PublisherConfig{})

	require.NoError(t, publishOne(t.Context(), p, &handler.Message{ID: "a"}))
	err = publishOne(t.Context(), p, &handler.Message{ID: "b"})

	require.ErrorIs(t, err, rabbitmq.ErrNotConfirmed)
	require.False(t, handler.IsPermanent(err))
	require.Equal(t, uint64(0), p.Stats().Failures, "a nack is no failure of the connection")
}

// Case Q6: the connection is lost between publish and confirm; the wait for the
// confirm hung for ever (amqp091-go#182).
func TestPublisher_ConnectionLostBeforeTheConfirm(t *testing.T) {
	t.Parallel()

	b := setup(t)
	l := &line{}
	p := b.newPublisher(t, rabbitmq.PublisherConfig{Dial: l.dial})
	require.NoError(t, publishOne(t.Context(), p, &handler.Message{ID: "a"}))
	l.each(func(w *wire) { w.setDeaf(true) })
	result := make(chan error, 1)
	go func() { result <- publishOne(context.WithoutCancel(t.Context()), p, &handler.Message{ID: "b"}) }()
	require.Eventually(t, func() bool { return b.ready(t) == 2 }, patience, tick, "the broker has not got it")
	l.cut(false)

	err := <-result
	require.ErrorContains(t, err, "before the broker confirmed it")
	require.True(t, handler.IsUnavailable(err))
	require.False(t, handler.IsPermanent(err))
	require.NoError(t, publishOne(t.Context(), p, &handler.Message{ID: "b"}), "the publisher goes on")
}

// Case Q6: the broker has gone silent, and TCP says nothing.
func TestPublisher_NoConfirm(t *testing.T) {
	t.Parallel()

	b := setup(t)
	l := &line{}
	p := b.newPublisher(t, rabbitmq.PublisherConfig{Dial: l.dial, RequestTimeout: time.Second})
	require.NoError(t, publishOne(t.Context(), p, &handler.Message{ID: "a"}))
	l.each((*wire).blackHole)

	err := publishOne(t.Context(), p, &handler.Message{ID: "b"})

	require.True(t, handler.IsUnavailable(err), "%v", err)
	if last := p.Stats().LastError; last != nil { // nil: it has connected again already
		require.ErrorContains(t, last, "none of 1 within 1s")
	}
	require.NoError(t, publishOne(t.Context(), p, &handler.Message{ID: "b"}), "the publisher goes on")
	require.Equal(t, 2, l.dialled())
}

// Case Q9: the broker blocks publishers during a memory alarm: they wait, and
// it can be seen.
func TestPublisher_Blocked(t *testing.T) {
	t.Parallel()

	b := setup(t)
	l := &line{}
	p := b.newPublisher(t, rabbitmq.PublisherConfig{Dial: l.dial, RequestTimeout: time.Second})
	require.NoError(t, publishOne(t.Context(), p, &handler.Message{ID: "a"}))
	l.each(func(w *wire) { w.slipIn(10, 60, append([]byte{10}, "low on mem"...)) })
	require.Eventually(t, func() bool { return p.Stats().State == rabbitmq.Blocked }, patience, tick)

	ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond) // longer than the request timeout
	defer cancel()
	err := publishOne(ctx, p, &handler.Message{ID: "b"})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "it blocks publishers")
	require.True(t, handler.IsUnavailable(err))

	result := make(chan error, 1)
	go func() { result <- publishOne(context.WithoutCancel(t.Context()), p, &handler.Message{ID: "b"}) }()
	l.each(func(w *wire) { w.slipIn(10, 61, nil) })
	require.NoError(t, <-result)
	require.Equal(t, rabbitmq.Publishing, p.Stats().State)
	require.Equal(t, 2, b.ready(t))

	// One that was out when the alarm came is waited for as well.
	l.each(func(w *wire) { w.setDeaf(true) })
	go func() { result <- publishOne(context.WithoutCancel(t.Context()), p, &handler.Message{ID: "c"}) }()
	require.Eventually(t, func() bool { return b.ready(t) == 3 }, patience, tick, "the broker has not got it")
	l.each(func(w *wire) { w.slipIn(10, 60, append([]byte{10}, "low on mem"...)) })
	require.Eventually(t, func() bool { return p.Stats().State == rabbitmq.Blocked }, patience, tick)
	select {
	case err := <-result:
		require.Fail(t, "the publisher did not wait", "%v", err)
	case <-time.After(1500 * time.Millisecond):
	}
	l.each(func(w *wire) { w.setDeaf(false) })
	require.NoError(t, <-result)
	require.Equal(t, 1, l.dialled(), "the connection was given up")
}

func TestPublisher_BrokerAway(t *testing.T) {
	t.Parallel()

	b := setup(t)
	l := &line{down: true}
	p := b.newPublisher(t, rabbitmq.PublisherConfig{Dial: l.dial})
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()

	err := publishOne(ctx, p, &handler.Message{ID: "a"})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, errLineDown.Error(), "why there is no broker")
	require.True(t, handler.IsUnavailable(err))

	l.restore()
	require.NoError(t, publishOne(t.Context(), p, &handler.Message{ID: "a"}))
}

// What AMQP cannot carry is refused for good, alone: its neighbours pass, and
// neither channel nor connection ends.
func TestPublisher_CannotBeCarried(t *testing.T) {
	t.Parallel()

	b := setup(t)
	key := b.queue
	p := b.newPublisher(t, rabbitmq.PublisherConfig{MaxPayload: 100, ExchangeOf: byTopic, RoutingKey: func(msg *handler.Message) string { return key + msg.Type }})
	tests := []struct {
		name string
		msg  *handler.Message
		want string
	}{
		{name: "Payload", msg: &handler.Message{Payload: make([]byte, 101)}, want: "payload too large: 101 bytes, limit 100"},
		{name: "RoutingKey", msg: &handler.Message{Type: strings.Repeat("k", 256)}, want: "routing key must have at most 255 bytes"},
		{name: "Exchange", msg: &handler.Message{Origin: handler.Origin{Topic: strings.Repeat("e", 256)}}, want: "exchange must have at most 255 bytes"},
		{name: "HeaderName", msg: &handler.Message{Headers: handler.Headers{{Name: strings.Repeat("n", 256)}}}, want: "header name of 256 bytes"},
		{name: "Headers", msg: &handler.Message{Headers: handler.Headers{{Name: "n", Value: make([]byte, 131_072)}}}, want: "headers of 131"},
		{name: "Nil", msg: nil, want: "message is nil"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			errs := p.Publish(t.Context(), []*handler.Message{{ID: "before"}, tt.msg, {ID: "after"}})

			require.NoError(t, errs[0])
			require.ErrorContains(t, errs[1], tt.want)
			require.True(t, handler.IsPermanent(errs[1]))
			require.NoError(t, errs[2])
			require.Equal(t, uint64(0), p.Stats().Failures)
		})
	}
	// The most that fits, fits.
	most := handler.Headers{{Name: "n", Value: bytes.Repeat([]byte("v"), 128_000)}}
	require.NoError(t, publishOne(t.Context(), p, &handler.Message{ID: "most", Headers: most}))
}

// Ten megabytes pass, and what is longer than a property stands in the header.
func TestPublisher_LargeThings(t *testing.T) {
	t.Parallel()

	b := setup(t)
	p := b.newPublisher(t, rabbitmq.PublisherConfig{})
	long := strings.Repeat("x", 10_000)
	msg := &handler.Message{
		ID: long, Type: long, CorrelationID: long, ContentType: long,
		OccurredAt: time.Date(1969, 7, 20, 20, 17, 40, 5, time.UTC), // before the property's epoch
		Payload:    bytes.Repeat([]byte{0, 0xff, 'x', 1, 2}, 2<<20),
	}
	require.NoError(t, publishOne(t.Context(), p, msg))

	r := run(t, b.sourceConfig(), transporttest.SinkConfig{})
	got := r.sink.Next(t)
	require.Equal(t, []string{long, long, long, long}, []string{got.Message.ID, got.Message.Type, got.Message.CorrelationID, got.Message.ContentType})
	require.True(t, msg.OccurredAt.Equal(got.Message.OccurredAt))
	require.True(t, bytes.Equal(msg.Payload, got.Message.Payload))
	got.Settled()
	r.stop(t)
}

func TestPublisher_Window(t *testing.T) {
	t.Parallel()

	const messages, window = 100, 3
	b := setup(t)
	l := &line{}
	p := b.newPublisher(t, rabbitmq.PublisherConfig{Window: window, Dial: l.dial})
	require.NoError(t, publishOne(t.Context(), p, &handler.Message{ID: "first"}))
	l.each(func(w *wire) { w.setDeaf(true) })
	msgs := make([]*handler.Message, messages)
	for i := range msgs {
		msgs[i] = &handler.Message{ID: fmt.Sprint(i)}
	}
	results := make(chan []error, 1)
	go func() { results <- p.Publish(context.WithoutCancel(t.Context()), msgs) }()

	require.Eventually(t, func() bool { return b.ready(t) == 1+window }, patience, tick)
	require.Never(t, func() bool { return b.ready(t) > 1+window }, 100*time.Millisecond, tick, "more is out than the window has room for")
	l.each(func(w *wire) { w.setDeaf(false) })

	for _, err := range <-results {
		require.NoError(t, err)
	}
	require.Equal(t, 1+messages, b.ready(t))
	require.Equal(t, 0, p.Stats().InFlight)
}

func TestPublisher_Close(t *testing.T) {
	t.Parallel()

	b := setup(t)
	l := &line{}
	p := b.newPublisher(t, rabbitmq.PublisherConfig{Dial: l.dial})
	require.NoError(t, publishOne(t.Context(), p, &handler.Message{ID: "a"}))
	l.each((*wire).blackHole)
	result := make(chan error, 1)
	go func() { result <- publishOne(context.WithoutCancel(t.Context()), p, &handler.Message{ID: "b"}) }()
	require.Eventually(t, func() bool { return p.Stats().InFlight == 1 }, patience, tick)

	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	began := time.Now()
	err := p.Close(ctx)

	require.Less(t, time.Since(began), 5*time.Second, "Close does not wait for the request timeout")
	require.ErrorContains(t, err, "1 messages were not confirmed")
	require.True(t, handler.IsUnavailable(<-result))
	require.ErrorIs(t, publishOne(t.Context(), p, &handler.Message{ID: "c"}), rabbitmq.ErrPublisherClosed)
	require.Equal(t, rabbitmq.Stopped, p.Stats().State)
	require.NoError(t, p.Close(t.Context()), "closing twice is harmless")
}

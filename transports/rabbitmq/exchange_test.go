package rabbitmq_test

import (
	"context"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/internal/services"
	"github.com/semel-go/semel/transports/rabbitmq"
)

// exchange declares an exchange from which everything comes to the bundle's
// queue, or nothing to anywhere.
func (b *testBundle) exchange(t *testing.T, name string, bound bool) string {
	t.Helper()
	name = b.queue + "." + name
	require.NoError(t, b.channel.ExchangeDeclare(name, amqp.ExchangeFanout, false, false, false, false, nil))
	t.Cleanup(func() { require.NoError(t, b.channel.ExchangeDelete(name, false, false)) })
	if bound {
		require.NoError(t, b.channel.QueueBind(b.queue, "", name, false, nil))
	}
	return name
}

// byTopic is the exchange of a message as outbox.AggregateType names it.
func byTopic(msg *handler.Message) string { return msg.Origin.Topic }

func to(exchange, id string) *handler.Message {
	return &handler.Message{ID: id, Origin: handler.Origin{Topic: exchange}}
}

// publishEach publishes messages to each of the exchanges in turn.
func publishEach(ctx context.Context, p *rabbitmq.Publisher, rounds int, exchanges ...string) map[string][]error {
	var msgs []*handler.Message
	for range rounds {
		for _, exchange := range exchanges {
			msgs = append(msgs, to(exchange, "a"))
		}
	}
	errs := make(map[string][]error)
	for i, err := range p.Publish(ctx, msgs) {
		errs[msgs[i].Origin.Topic] = append(errs[msgs[i].Origin.Topic], err)
	}
	return errs
}

// Each message goes to its own exchange, with its own routing key. What comes
// back from one is told apart from its like, of the same id, to another.
func TestPublisher_ExchangeOf(t *testing.T) {
	t.Parallel()

	b := setup(t)
	bound, unbound := b.exchange(t, "bound", true), b.exchange(t, "unbound", false)
	p := b.newPublisher(t, rabbitmq.PublisherConfig{ExchangeOf: byTopic, RoutingKey: func(msg *handler.Message) string { return "key of " + msg.ID }})

	errs := publishEach(t.Context(), p, 50, unbound, bound)

	for i := range 50 {
		require.NoError(t, errs[bound][i])
		require.ErrorIs(t, errs[unbound][i], rabbitmq.ErrUnroutable)
		require.ErrorContains(t, errs[unbound][i], unbound)
	}
	require.Equal(t, 50, b.ready(t))
	d, ok, err := b.channel.Get(b.queue, true)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, []string{bound, "key of a"}, []string{d.Exchange, d.RoutingKey})
}

// An exchange that is missing is somebody's mistake, perhaps in the order of a
// deployment: said clearly, never permanent. The broker ends the channel of
// whoever publishes to it; messages to others do not notice.
func TestPublisher_ExchangeMissing(t *testing.T) {
	t.Parallel()

	b := setup(t)
	bound, missing := b.exchange(t, "bound", true), b.queue+".missing"
	p := b.newPublisher(t, rabbitmq.PublisherConfig{ExchangeOf: byTopic})

	errs := publishEach(t.Context(), p, 50, bound, missing)

	for i := range 50 {
		require.NoError(t, errs[bound][i])
		require.ErrorIs(t, errs[missing][i], rabbitmq.ErrExchangeRefused)
		require.ErrorContains(t, errs[missing][i], "no exchange '"+missing+"'")
		require.False(t, handler.IsPermanent(errs[missing][i]))
		require.False(t, handler.IsUnavailable(errs[missing][i]), "the broker is there")
	}
	require.Equal(t, 50, b.ready(t))
	require.Zero(t, p.Stats().Failures, "the channel ended")

	b.exchange(t, "missing", true)
	require.Eventually(t, func() bool { return publishOne(t.Context(), p, to(missing, "b")) == nil }, patience, tick)
	require.Equal(t, 51, b.ready(t))
}

// The exchange is deleted under a publisher that has published to it, with
// messages to others out. Of those nobody can know: they are to be sent again,
// and are told nothing of the exchange.
func TestPublisher_ExchangeDeleted(t *testing.T) {
	t.Parallel()

	b := setup(t)
	bound, deleted := b.exchange(t, "bound", true), b.exchange(t, "deleted", true)
	p := b.newPublisher(t, rabbitmq.PublisherConfig{ExchangeOf: byTopic})
	for _, errs := range publishEach(t.Context(), p, 1, bound, deleted) {
		require.NoError(t, errs[0])
	}
	require.NoError(t, b.channel.ExchangeDelete(deleted, false, false))

	errs := publishEach(t.Context(), p, 50, bound, deleted)

	for i := range 50 {
		require.Error(t, errs[deleted][i])
		require.False(t, handler.IsPermanent(errs[deleted][i]))
		if err := errs[bound][i]; err != nil {
			require.True(t, handler.IsUnavailable(err), "%v", err)
			require.NotErrorIs(t, err, rabbitmq.ErrExchangeRefused)
		}
	}
	require.ErrorIs(t, errs[deleted][0], rabbitmq.ErrExchangeRefused, "it was out when the channel ended")
	require.ErrorContains(t, errs[deleted][0], "no exchange '"+deleted+"'")

	require.Eventually(t, func() bool { return p.Stats().Failures == 1 }, patience, tick)
	errs = publishEach(t.Context(), p, 50, bound, deleted)
	for i := range 50 {
		require.NoError(t, errs[bound][i], "only once")
		require.ErrorIs(t, errs[deleted][i], rabbitmq.ErrExchangeRefused)
	}
	require.Equal(t, uint64(1), p.Stats().Failures)
}

// An exchange that the user may not write to ends the channel too. Now and then
// it is tried again; in between others pass.
func TestPublisher_ExchangeForbidden(t *testing.T) {
	t.Parallel()

	b := setup(t)
	bound, forbidden := b.exchange(t, "bound", true), b.exchange(t, "forbidden", true)
	url := services.RabbitMQUser(t, "s3cret", "^$", `\.bound$`, "^$")
	p := b.newPublisher(t, rabbitmq.PublisherConfig{URL: url, ExchangeOf: byTopic})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var passed int
	for round := range 20 {
		errs := publishEach(ctx, p, 1, forbidden, bound)

		require.ErrorIs(t, errs[forbidden][0], rabbitmq.ErrExchangeRefused)
		require.ErrorContains(t, errs[forbidden][0], "ACCESS_REFUSED")
		require.False(t, handler.IsPermanent(errs[forbidden][0]))
		require.False(t, handler.IsUnavailable(errs[forbidden][0]))
		if err := errs[bound][0]; err == nil {
			passed++
		} else {
			require.True(t, handler.IsUnavailable(err), "round %d: %v", round, err)
		}
	}
	require.Positive(t, passed)
	require.Less(t, p.Stats().Failures, uint64(20), "not each attempt ends the channel")
}

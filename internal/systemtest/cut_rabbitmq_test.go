package systemtest_test

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/internal/faultproxy"
	"github.com/semel-go/semel/internal/services"
	"github.com/semel-go/semel/transports/rabbitmq"
)

// Case Q3: the connection breaks at any frame whatever, of the handshake, the
// subscription, the deliveries, the acknowledgements or the way out; the
// consumer stood still or handled what it had twice (watermill#262). Each frame
// of ours in turn is one that the broker does not get any more, then the last
// that it gets, and each of the broker's is one that we do not get.
func TestCut_RabbitMQ(t *testing.T) {
	t.Parallel()

	address, err := url.Parse(services.RabbitMQ(t))
	require.NoError(t, err)
	conn, err := amqp.Dial(address.String())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close()) })
	sweep := &cutSweep{
		framing: faultproxy.AMQP(),
		addr:    net.JoinHostPort(address.Hostname(), address.Port()),
		kind:    amqpKinds(),
		running: map[faultproxy.Side][]string{
			faultproxy.FromClient: {
				"header", "connection.start-ok", "connection.tune-ok", "connection.open", "channel.open",
				"basic.qos", "basic.consume", "basic.ack",
			},
			faultproxy.FromServer: {
				"connection.start", "connection.tune", "connection.open-ok", "channel.open-ok",
				"basic.qos-ok", "basic.consume-ok", "basic.deliver", "content header", "content body",
			},
		},
		stopping: map[faultproxy.Side][]string{
			faultproxy.FromClient: {"basic.nack", "basic.ack", "basic.cancel", "channel.close", "connection.close"},
			faultproxy.FromServer: {"basic.cancel-ok", "channel.close-ok", "connection.close-ok"},
		},
		last:    true,
		grouped: "basic.ack",
	}
	sweep.place = func(t *testing.T, name string) cutPlace { return newCutQueue(t, conn, *address, name) }
	sweep.run(t, "rabbitmq")
}

// amqpKinds returns what names a frame.
func amqpKinds() func(frame []byte) string {
	methods := map[[2]uint16]string{
		{10, 10}: "connection.start", {10, 11}: "connection.start-ok", {10, 30}: "connection.tune", {10, 31}: "connection.tune-ok",
		{10, 40}: "connection.open", {10, 41}: "connection.open-ok", {10, 50}: "connection.close", {10, 51}: "connection.close-ok",
		{20, 10}: "channel.open", {20, 11}: "channel.open-ok", {20, 40}: "channel.close", {20, 41}: "channel.close-ok",
		{60, 10}: "basic.qos", {60, 11}: "basic.qos-ok", {60, 20}: "basic.consume", {60, 21}: "basic.consume-ok",
		{60, 30}: "basic.cancel", {60, 31}: "basic.cancel-ok", {60, 60}: "basic.deliver", {60, 80}: "basic.ack", {60, 120}: "basic.nack",
	}
	const header, body, heartbeat = 2, 3, 8
	return func(frame []byte) string {
		switch frame[0] {
		case 'A':
			return "header"
		case header:
			return "content header"
		case body:
			return "content body"
		case heartbeat:
			return "" // comes when it comes, and is answered by nothing
		}
		number := [2]uint16{binary.BigEndian.Uint16(frame[7:]), binary.BigEndian.Uint16(frame[9:])}
		if name, ok := methods[number]; ok {
			return name
		}
		return fmt.Sprint(number)
	}
}

// cutQueue is a queue of one consumer of a sweep.
type cutQueue struct {
	name    string
	through url.URL
	channel *amqp.Channel
}

func newCutQueue(t *testing.T, conn *amqp.Connection, address url.URL, name string) *cutQueue {
	t.Helper()
	q := &cutQueue{name: "semel-systemtest-" + rand.Text() + "-" + name, through: address}
	var err error
	q.channel, err = conn.Channel()
	require.NoError(t, err)
	_, err = q.channel.QueueDeclare(q.name, true, false, false, false, nil)
	require.NoError(t, err)
	t.Cleanup(func() {
		_, err := q.channel.QueueDelete(q.name, false, false, false)
		require.NoError(t, err)
	})
	require.NoError(t, q.channel.Confirm(false))
	var last *amqp.DeferredConfirmation
	for i := range cutMessages {
		last, err = q.channel.PublishWithDeferredConfirm("", q.name, true, false,
			amqp.Publishing{MessageId: fmt.Sprintf("evt_%d", i), Body: []byte(`{"amount":1}`), DeliveryMode: amqp.Persistent})
		require.NoError(t, err)
	}
	_, err = last.WaitContext(t.Context())
	require.NoError(t, err)
	return q
}

// source implements [cutPlace].
func (q *cutQueue) source(addr string) handler.Source {
	q.through.Host = addr
	return rabbitmq.NewSource(rabbitmq.SourceConfig{URL: q.through.String(), Queue: q.name, Logger: slog.New(slog.DiscardHandler)})
}

// left implements [cutPlace] as [queue.left] does.
func (q *cutQueue) left() (int, error) {
	d, ok, err := q.channel.Get(q.name, false)
	if err != nil || !ok {
		return 0, err
	}
	return int(d.MessageCount) + 1, d.Nack(false, true)
}

// abandoned implements [cutPlace].
func (q *cutQueue) abandoned() (bool, error) {
	state, err := q.channel.QueueDeclarePassive(q.name, true, false, false, false, nil)
	return state.Consumers == 0, err
}

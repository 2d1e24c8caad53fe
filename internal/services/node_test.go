package services_test

import (
	"net"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/internal/services"
)

// A broker that is only named cannot be given users: the test says so, and
// fails where nothing may be skipped.
func TestRabbitMQUser_ForeignBroker(t *testing.T) { // changes the environment: not parallel
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	t.Setenv(services.RabbitMQVariable, "amqp://guest:s3cret@"+listener.Addr().String()+"/")
	tests := []struct {
		name, required string
		wantFailed     bool
	}{
		{name: "Laptop"},
		{name: "Required", required: "required", wantFailed: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("CI", "")
			t.Setenv("SEMEL_SERVICES", tt.required)

			tb := run(func(tb testing.TB) { services.RabbitMQUser(tb, "secret", "", "", "") })

			require.Equal(t, tt.wantFailed, tb.failed != "", tb.failed)
			require.Equal(t, !tt.wantFailed, tb.skipped != "", tb.skipped)
			require.Contains(t, tb.failed+tb.skipped, "make services-up")
			require.NotContains(t, tb.failed+tb.skipped, "s3cret")
		})
	}
}

// What was declared is there when a killed node comes back, at the same
// address.
func TestRabbitMQNode_KilledAndStarted(t *testing.T) {
	t.Parallel()

	node := services.NewRabbitMQNode(t)
	url := node.URL
	conn, err := amqp.Dial(url)
	require.NoError(t, err)
	ch, err := conn.Channel()
	require.NoError(t, err)
	_, err = ch.QueueDeclare("q", true, false, false, false, nil)
	require.NoError(t, err)
	node.Remember(t)

	node.Kill(t)
	_, err = amqp.Dial(url)
	require.Error(t, err)
	node.Start(t)

	require.Equal(t, url, node.URL)
	_ = conn.Close() // of the node before
	conn, err = amqp.Dial(url)
	require.NoError(t, err)
	ch, err = conn.Channel()
	require.NoError(t, err)
	_, err = ch.QueueDeclarePassive("q", true, false, false, false, nil)
	require.NoError(t, err)
	require.NoError(t, conn.Close())
}

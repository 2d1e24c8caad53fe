package rabbitmq

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
)

func TestSourceConfig_Defaults(t *testing.T) {
	t.Parallel()

	c, err := SourceConfig{URL: "amqp://localhost", Queue: "q"}.withDefaults()

	require.NoError(t, err)
	require.Equal(t, 200, c.Prefetch)
	require.Equal(t, 40*time.Second, c.DrainTimeout)
	require.Equal(t, 10*time.Second, c.ConnectTimeout)
	require.Equal(t, 10*time.Second, c.RequestTimeout)
	require.True(t, strings.HasPrefix(c.ConsumerTag, "semel-"))
	require.Equal(t, slog.Default(), c.Logger)
}

func TestPublisherConfig_Defaults(t *testing.T) {
	t.Parallel()

	c, err := PublisherConfig{URL: "amqp://localhost"}.withDefaults()

	require.NoError(t, err)
	require.Equal(t, 500, c.Window)
	require.Equal(t, 16<<20, c.MaxPayload)
	require.Equal(t, 10*time.Second, c.ConnectTimeout)
	require.Equal(t, 10*time.Second, c.RequestTimeout)
	require.Equal(t, "order.paid", c.RoutingKey(&handler.Message{Type: "order.paid"}))
	require.Equal(t, slog.Default(), c.Logger)
}

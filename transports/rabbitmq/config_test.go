package rabbitmq_test

import (
	"net"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/transports/rabbitmq"
	"github.com/semel-go/semel/transports/transporttest"
)

func TestSourceConfig_Impossible(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name   string
		change func(*rabbitmq.SourceConfig)
		want   string
	}{
		{name: "NoQueue", change: func(c *rabbitmq.SourceConfig) { c.Queue = "" }, want: "Queue is required"},
		{name: "LongQueue", change: func(c *rabbitmq.SourceConfig) { c.Queue = strings.Repeat("q", 256) }, want: "Queue must have at most 255 bytes, has 256"},
		{name: "NoURL", change: func(c *rabbitmq.SourceConfig) { c.URL = "" }, want: "URL is required"},
		{name: "Scheme", change: func(c *rabbitmq.SourceConfig) { c.URL = "http://u:s3cret@h" }, want: "URL is not an AMQP URL"},
		{name: "PasswordNotEncoded", change: func(c *rabbitmq.SourceConfig) { c.URL = "amqp://u:s3cret/x@h" }, want: "URL is not an AMQP URL"},
		{name: "ControlCharacter", change: func(c *rabbitmq.SourceConfig) { c.URL = "amqp://u:s3cret\x7f@h" }, want: "URL is not an AMQP URL"},
		{name: "NegativePrefetch", change: func(c *rabbitmq.SourceConfig) { c.Prefetch = -1 }, want: "Prefetch must be from 1 to 65535, is -1"},
		{name: "HugePrefetch", change: func(c *rabbitmq.SourceConfig) { c.Prefetch = 65_536 }, want: "Prefetch must be from 1 to 65535, is 65536"},
		{name: "TwoWaysToOrder", change: func(c *rabbitmq.SourceConfig) { c.Exclusive, c.SingleActiveConsumer = true, true }, want: "give Exclusive or SingleActiveConsumer, not both"},
		{name: "LongTag", change: func(c *rabbitmq.SourceConfig) { c.ConsumerTag = strings.Repeat("t", 256) }, want: "ConsumerTag must have at most 255 bytes, has 256"},
		{name: "ConnectTimeout", change: func(c *rabbitmq.SourceConfig) { c.ConnectTimeout = -time.Second }, want: "ConnectTimeout must be positive, is -1s"},
		{name: "RequestTimeout", change: func(c *rabbitmq.SourceConfig) { c.RequestTimeout = -time.Second }, want: "RequestTimeout must be positive, is -1s"},
		{name: "Dial", change: func(c *rabbitmq.SourceConfig) { c.AMQP.Dial = net.Dial }, want: "AMQP.Dial must be nil"},
		{name: "Recovery", change: func(c *rabbitmq.SourceConfig) { c.AMQP.Recovery = &amqp.Recovery{} }, want: "AMQP.Recovery must be nil"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			config := rabbitmq.SourceConfig{URL: "amqp://nowhere.invalid", Queue: "q"}
			tt.change(&config)

			err := rabbitmq.NewSource(config).Run(t.Context(), transporttest.NewSink(transporttest.SinkConfig{}))

			require.ErrorContains(t, err, tt.want)
			require.NotContains(t, err.Error(), "s3cret")
		})
	}
}

func TestSourceConfig_ReportsEverything(t *testing.T) {
	t.Parallel()

	err := rabbitmq.NewSource(rabbitmq.SourceConfig{Prefetch: -1}).Run(t.Context(), nil)

	for _, want := range []string{"URL is required", "Queue is required", "Prefetch must be"} {
		require.ErrorContains(t, err, want)
	}
}

func TestPublisherConfig_Impossible(t *testing.T) {
	t.Parallel()

	p := rabbitmq.NewPublisher(rabbitmq.PublisherConfig{URL: "amqp://u:s3cret/x@h", Exchange: strings.Repeat("e", 256), ExchangeOf: byTopic, Window: -1, MaxPayload: -1})

	errs := p.Publish(t.Context(), []*handler.Message{{ID: "a"}})

	require.Len(t, errs, 1)
	for _, want := range []string{"URL is not", "give Exchange or ExchangeOf, not both", "Exchange must have at most 255 bytes, has 256", "Window must be from 1 to 65535, is -1", "MaxPayload must be from 1 to 536870912, is -1"} {
		require.ErrorContains(t, errs[0], want)
	}
	require.NotContains(t, errs[0].Error(), "s3cret")
	require.False(t, handler.IsPermanent(errs[0]), "a wrong config is not the message's fault")
	require.NoError(t, p.Close(t.Context()))
}

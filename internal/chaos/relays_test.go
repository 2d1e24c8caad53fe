package main_test

import (
	"bytes"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/internal/chaos/campaign"
	"github.com/semel-go/semel/internal/chaos/wire"
	"github.com/semel-go/semel/internal/services"
)

// Two kills of a relay at each point, through Kafka. CHAOS_POINT, CHAOS_BROKER
// and CHAOS_PLANT narrow it and plant a bug, as in TestChaos. Case O4: killed
// between the broker's answer and the mark, it is published again under the
// same id. Case O5, scaled down: make chaos has 16 relays and 100,000 events.
func TestChaos_Relays(t *testing.T) {
	t.Parallel()

	config := campaign.FleetConfig{Relays: 6, Events: 3000, Kills: 2, Plant: os.Getenv("CHAOS_PLANT"), Progress: t.Output()}
	var err error
	config.Points, err = wire.Select(os.Getenv("CHAOS_POINT"), wire.RelayPoints())
	require.NoError(t, err)
	config.Broker = wire.Broker(os.Getenv("CHAOS_BROKER"))
	services.Postgres(t)
	if config.Broker == wire.RabbitMQ {
		services.RabbitMQ(t)
	} else {
		services.Kafka(t)
	}

	result, err := campaign.RunRelays(t.Context(), config)

	require.NoError(t, err)
	var lines bytes.Buffer
	result.Write(&lines)
	t.Log("\n" + lines.String())
	require.NotRegexp(t, `(lost|doubled|reordered|phantom)=[1-9]`, lines.String(), "PROMISE BROKEN")
	require.NoError(t, result.Failure())
}

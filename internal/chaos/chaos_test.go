package main_test

import (
	"bytes"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/semel-go/semel/internal/chaos/campaign"
	"github.com/semel-go/semel/internal/chaos/wire"
	"github.com/semel-go/semel/internal/services"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Two kills at each point on each broker. CHAOS_KILLS, CHAOS_POINT,
// CHAOS_BROKER and CHAOS_PLANT narrow it and plant a bug, for the proof that
// it would be seen (internal/plants).
func TestChaos(t *testing.T) {
	t.Parallel()

	config := campaign.Config{}
	var err error
	config.Brokers, err = wire.Select(os.Getenv("CHAOS_BROKER"), wire.Brokers())
	require.NoError(t, err)
	for _, broker := range config.Brokers {
		switch broker {
		case wire.Kafka:
			services.Kafka(t)
		case wire.RabbitMQ:
			services.RabbitMQ(t)
		}
	}
	prove(t, config, wire.Points())
}

// prove runs a campaign of two kills a group, or as the variables say, and requires
// that the promise was kept.
func prove(t *testing.T, config campaign.Config, points []wire.Point) {
	t.Helper()
	services.Postgres(t)
	config.Plant, config.Progress = os.Getenv("CHAOS_PLANT"), t.Output()
	var err error
	config.Points, err = wire.Select(os.Getenv("CHAOS_POINT"), points)
	require.NoError(t, err)
	config.Kills = 2 * config.Groups()
	if kills := os.Getenv("CHAOS_KILLS"); kills != "" {
		config.Kills, err = strconv.Atoi(kills)
		require.NoError(t, err)
	}

	summary, err := campaign.Run(t.Context(), config)

	require.NoError(t, err)
	var lines bytes.Buffer
	summary.Write(&lines)
	t.Log("\n" + lines.String())
	require.NotRegexp(t, `(lost|doubled|reordered|phantom)=[1-9]`, lines.String(), "PROMISE BROKEN")
	require.NoError(t, summary.Err())
}

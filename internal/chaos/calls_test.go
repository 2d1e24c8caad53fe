package main_test

import (
	"bytes"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/internal/chaos/campaign"
	"github.com/semel-go/semel/internal/chaos/wire"
	"github.com/semel-go/semel/internal/services"
)

// Two kills of a provider's client at each point of the ledger of calls, while the
// provider times out behind its work, resets connections, answers twice, and dies.
// It knows idempotency keys for a quarter of the messages; for the others it makes an
// invoice with each call. CHAOS_KILLS, CHAOS_POINT and CHAOS_PLANT narrow it and plant
// a bug, as in TestChaos.
func TestChaos_Calls(t *testing.T) {
	t.Parallel()

	config := campaign.Config{Brokers: []wire.Broker{wire.Calls}, Plant: os.Getenv("CHAOS_PLANT"), Progress: t.Output()}
	var err error
	config.Points, err = wire.Select(os.Getenv("CHAOS_POINT"), wire.CallPoints())
	require.NoError(t, err)
	config.Kills = 2 * config.Groups()
	if kills := os.Getenv("CHAOS_KILLS"); kills != "" {
		config.Kills, err = strconv.Atoi(kills)
		require.NoError(t, err)
	}
	services.Postgres(t)

	summary, err := campaign.Run(t.Context(), config)

	require.NoError(t, err)
	var lines bytes.Buffer
	summary.Write(&lines)
	t.Log("\n" + lines.String())
	require.NotRegexp(t, `(lost|doubled|reordered|phantom)=[1-9]`, lines.String(), "PROMISE BROKEN")
	require.NoError(t, summary.Err())
}

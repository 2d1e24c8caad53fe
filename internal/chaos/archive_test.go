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

// Case O10: two processes purge and archive, and each is killed twice at every point between the commit of a batch and the deletion of its rows. Every event is in the table or in the archive at each kill, and in one object at the end; pending and quarantined ones stay in the table (seed documents)
func TestChaos_Archive(t *testing.T) {
	t.Parallel()

	// CHAOS_KILLS, CHAOS_POINT and CHAOS_PLANT narrow it and plant a bug, as in TestChaos.
	config := campaign.Config{Brokers: []wire.Broker{wire.Archive}, Plant: os.Getenv("CHAOS_PLANT"), Progress: t.Output()}
	var err error
	config.Points, err = wire.Select(os.Getenv("CHAOS_POINT"), wire.ArchivePoints())
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

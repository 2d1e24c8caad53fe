package main_test

import (
	"testing"

	"github.com/semel-go/semel/internal/chaos/campaign"
	"github.com/semel-go/semel/internal/chaos/wire"
)

// Two kills of a provider's client at each point of the ledger of calls, while the
// provider times out behind its work, resets connections, answers twice, and dies.
// It knows idempotency keys for a quarter of the messages; for the others it makes an
// invoice with each call. CHAOS_KILLS, CHAOS_POINT and CHAOS_PLANT narrow it and plant
// a bug, as in TestChaos.
func TestChaos_Calls(t *testing.T) {
	t.Parallel()

	prove(t, campaign.Config{Brokers: []wire.Broker{wire.Calls}}, wire.CallPoints())
}

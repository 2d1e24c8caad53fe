package outbox

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A read took seven seconds, in a database that was busy for a moment, and the
// topics that were to be read next waited for more than a minute.
func TestReader_PaceIsBounded(t *testing.T) {
	t.Parallel()

	one, two := map[string]*lane{"a": {}}, map[string]*lane{"a": {}, "b": {}}
	for _, lanes := range []map[string]*lane{one, two} {
		r := &reader{relayRun: &relayRun{Relay: &Relay{cfg: RelayConfig{Poll: time.Second}}, lanes: lanes}}
		require.LessOrEqual(t, r.pace(&cursor{gait: &gait{took: time.Millisecond}}), 50*time.Millisecond)
		require.LessOrEqual(t, r.pace(&cursor{gait: &gait{took: 500 * time.Millisecond}}), time.Second)
		require.LessOrEqual(t, r.pace(&cursor{gait: &gait{took: 7 * time.Second}}), 7*time.Second)
	}
}

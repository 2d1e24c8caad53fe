package main_test

import (
	"testing"

	"github.com/semel-go/semel/internal/chaos/campaign"
	"github.com/semel-go/semel/internal/chaos/wire"
)

// Case O10: two processes purge and archive, and each is killed twice at every point between the commit of a batch and the deletion of its rows. Every event is in the table or in the archive at each kill, and in one object at the end; pending and quarantined ones stay in the table (seed documents)
func TestChaos_Archive(t *testing.T) {
	t.Parallel()

	prove(t, campaign.Config{Brokers: []wire.Broker{wire.Archive}}, wire.ArchivePoints())
}

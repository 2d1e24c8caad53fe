package outbox

import (
	"maps"
	"sync"
	"sync/atomic"
)

// Stats is what a relay did since it was made.
type Stats struct {
	// Kinds has the counts of each aggregate type.
	Kinds map[string]KindStats

	// Outages counts attempts that found the broker away. They are spent on no
	// event.
	Outages int64

	// Stale counts events that were published, or failed, and could not be noted
	// because they were another's by then.
	Stale int64

	// LeasesLost counts shard ranges that another relay took because this one was
	// too slow.
	LeasesLost int64

	// Purged counts events that were deleted because they were old. With
	// [RelayConfig.Archive] they are there.
	Purged int64

	// PurgeError is why this relay's last purge failed, the archive's reason too. Nil
	// again after one that went well.
	PurgeError error
}

// KindStats are the counts of one aggregate type.
type KindStats struct {
	Sent        int64 // confirmed, and noted
	Failed      int64 // failed attempts
	Quarantined int64
}

// Stats returns what the relay did since it was made. It is safe for
// concurrent use.
func (r *Relay) Stats() Stats {
	c := &r.counters
	c.mu.Lock()
	defer c.mu.Unlock()
	return Stats{
		Kinds: maps.Clone(c.kinds), Outages: c.outages.Load(), Stale: c.stale.Load(), LeasesLost: c.leasesLost.Load(),
		Purged: c.deleted, PurgeError: c.purgeError,
	}
}

type counters struct {
	outages, stale, leasesLost atomic.Int64

	mu         sync.Mutex // guards what follows
	kinds      map[string]KindStats
	deleted    int64
	purgeError error
}

func (c *counters) purged(n int64, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deleted += n
	c.purgeError = err
}

func (c *counters) add(kind string, f func(*KindStats)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kinds == nil {
		c.kinds = make(map[string]KindStats)
	}
	k := c.kinds[kind]
	f(&k)
	c.kinds[kind] = k
}

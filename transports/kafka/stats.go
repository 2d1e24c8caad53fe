package kafka

import (
	"sync"
	"time"
)

// SourceStats is what a [Source] is doing and what happened to it.
type SourceStats struct {
	Partitions  int  // assigned to this member
	Held        int  // of these, not fetched because their window is full
	Paused      bool // by [Source.Pause]
	Waiting     int  // records fetched and not handed out
	InFlight    int  // deliveries neither settled nor returned
	Uncommitted int  // records settled, with all before them, and not committed

	RecordsLost    int64 // deleted by the topic's retention before they were fetched
	Rewinds        int64 // times a log ended before what was consumed or committed
	CommitFailures int64 // commits that were refused or went unanswered; all were tried again

	LastError   error // of whatever went wrong last, mended or not
	LastErrorAt time.Time
}

// Stats returns a snapshot. The counters go on from one Run to the next.
func (s *Source) Stats() SourceStats {
	stats := s.health.snapshot()
	stats.Paused = s.paused.Load()
	s.mu.Lock()
	m := s.member
	s.mu.Unlock()
	if m == nil {
		return stats
	}
	for _, a := range m.all() {
		a.mu.Lock()
		stats.Partitions++
		if a.held {
			stats.Held++
		}
		stats.Waiting += len(a.queue) + len(a.again)
		stats.InFlight += a.out
		stats.Uncommitted += a.tracker.uncommitted().records
		a.mu.Unlock()
	}
	return stats
}

// health counts what went wrong.
type health struct {
	mu    sync.Mutex // guards stats
	stats SourceStats
}

func (h *health) change(f func(*SourceStats)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f(&h.stats)
}

func (h *health) lost(n int64)  { h.change(func(s *SourceStats) { s.RecordsLost += n }) }
func (h *health) rewound()      { h.change(func(s *SourceStats) { s.Rewinds++ }) }
func (h *health) commitFailed() { h.change(func(s *SourceStats) { s.CommitFailures++ }) }

func (h *health) failed(err error) {
	h.change(func(s *SourceStats) { s.LastError, s.LastErrorAt = err, time.Now() })
}

func (h *health) snapshot() SourceStats {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.stats
}

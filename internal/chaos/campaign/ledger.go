package campaign

import (
	"fmt"
	"sync"

	"github.com/semel-go/semel/internal/chaos/wire"
	"github.com/semel-go/semel/outbox"
)

// ledger is what was written to the outbox, and what came out at the broker. It
// is safe for concurrent use.
type ledger struct {
	mu        sync.Mutex // guards all below
	committed map[string]bool
	seen      []seenEvent // in the order of the broker
	distinct  map[string]bool
}

// seenEvent is one copy of an event at the broker.
type seenEvent struct {
	id, aggregate string
	version       int64
}

func newLedger() *ledger {
	return &ledger{committed: map[string]bool{}, distinct: map[string]bool{}}
}

func (l *ledger) commits(events []outbox.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range events {
		l.committed[e.ID] = true
	}
}

func (l *ledger) sees(e seenEvent) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen = append(l.seen, e)
	l.distinct[e.id] = true
}

// counts returns how many events were committed, how many of them were seen,
// and how many copies in all.
func (l *ledger) counts() (committed, distinct, copies int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.committed), len(l.distinct), len(l.seen)
}

func (l *ledger) backlog() int {
	committed, distinct, _ := l.counts()
	return committed - distinct
}

// RelayCounts is what became of events.
type RelayCounts struct {
	Events int // that were committed; for a point: that were on their way at its kills

	// Repeats are copies beyond the first. Stray ones are of events that were not
	// on their way at a kill, and that every publisher confirmed.
	Repeats, Stray int

	Lost      int // committed, and never seen
	Reordered int // first seen behind a later one of the same aggregate
	Phantom   int // seen, and never committed
}

// judge compares what was written with what was seen. suspects says at which
// kill an event was on its way, "" if it was something else.
func (l *ledger) judge(suspects map[string]wire.Point) (total RelayCounts, points map[wire.Point]*RelayCounts, notes []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	points = map[wire.Point]*RelayCounts{}
	count := func(id string, add func(*RelayCounts)) {
		add(&total)
		if at := suspects[id]; at != "" {
			add(points[at])
		}
	}
	note := func(format string, args ...any) {
		if len(notes) < maxNotes {
			notes = append(notes, fmt.Sprintf(format, args...))
		}
	}
	for _, at := range suspects {
		if at != "" {
			if points[at] == nil {
				points[at] = &RelayCounts{}
			}
			points[at].Events++
		}
	}
	total.Events = len(l.committed)
	highest, first := map[string]int64{}, map[string]bool{}
	for _, e := range l.seen {
		_, suspected := suspects[e.id]
		switch {
		case !l.committed[e.id]:
			count(e.id, func(c *RelayCounts) { c.Phantom++ })
			note("phantom: event %s of %s was never committed", e.id, e.aggregate)
		case first[e.id]:
			count(e.id, func(c *RelayCounts) { c.Repeats++ })
			if !suspected {
				total.Stray++
				note("stray: event %s, version %d of %s, was sent twice and nobody was killed", e.id, e.version, e.aggregate)
			}
		case e.version < highest[e.aggregate]:
			count(e.id, func(c *RelayCounts) { c.Reordered++ })
			note("reordered: version %d of %s came behind %d", e.version, e.aggregate, highest[e.aggregate])
		default:
			highest[e.aggregate] = e.version
		}
		first[e.id] = true
	}
	for id := range l.committed {
		if !first[id] {
			count(id, func(c *RelayCounts) { c.Lost++ })
			note("lost: event %s was never seen", id)
		}
	}
	return total, points, notes
}

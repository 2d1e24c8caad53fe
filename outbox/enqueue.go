package outbox

import "time"

// enqueue hands events that were read under these leases, for one lane alone or
// for all that are together (nil), to their lanes, and counts those that
// something holds back.
func (r *relayRun) enqueue(events []*event, epochs *byLease[int64], alone *lane) (taken, heldBack int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	for _, e := range events {
		e.epoch = epochs.at(e.lo)
		if l := r.held.at(e.lo); l == nil || l.leaving || !r.may(e, now) {
			r.restart = true // it was passed over, and may be ours again
			continue
		}
		if !r.wanted(e.seq, e.aggregate, alone) {
			if r.inMind[e.seq] == nil {
				heldBack++
			}
			continue
		}
		r.admit(e)
		taken++
	}
	r.startLanes()
	return taken, heldBack
}

// enqueueHeads hands the heads of blocked aggregates to their lanes.
func (r *relayRun) enqueueHeads(events []*event, epochs *byLease[int64]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	for _, e := range events {
		e.epoch, e.retry = epochs.at(e.lo), true
		if l := r.held.at(e.lo); l == nil || l.leaving || !r.may(e, now) {
			r.restart = true
			continue
		}
		b := r.blocked[e.aggregate]
		if !r.stopped && r.inMind[e.seq] == nil && b != nil && b.seq == e.seq && !b.unsaved {
			r.admit(e)
		}
	}
	r.startLanes()
}

func (r *relayRun) admit(e *event) {
	r.inMind[e.seq] = e
	r.top = max(r.top, e.seq)
	r.bytes += e.size
	l := r.lane(e.aggregate.kind)
	l.queue = append(l.queue, e)
}

func (r *relayRun) startLanes() {
	for _, l := range r.lanes {
		r.startLane(l)
	}
	if r.restart {
		poked(r.poke)
	}
}

// wanted reports whether an event that was read for one lane alone, or for all
// that are together, may go to its lane now. If the lane has no room, none of
// its later events may before this one has been read again. It is called with mu
// held.
func (r *relayRun) wanted(seq int64, a aggregate, alone *lane) bool {
	if r.stopped || r.restart || r.holds(a, seq) || seq <= r.top && r.inMind[seq] != nil {
		return false
	}
	l := r.lane(a.kind)
	switch {
	case alone != nil && l != alone:
		return false // it is read with its own
	case l.alone() && l != alone:
	case len(l.queue) < r.laneRoom() && !l.waits(time.Now()) && (l.resume == 0 || l.resume > seq):
		return true
	}
	l.passed(seq)
	return false
}

// drop forgets an event. It is called with mu held.
func (r *relayRun) drop(e *event) {
	delete(r.inMind, e.seq)
	r.bytes -= e.size
}

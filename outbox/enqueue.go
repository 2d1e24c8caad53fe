package outbox

import "time"

// enqueue hands events that were read under these leases to their lanes, and
// counts those that something holds back.
func (r *relayRun) enqueue(events []*event, epochs map[int16]int64, retry bool) (taken, heldBack int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	for _, e := range events {
		e.epoch, e.retry = epochs[e.lo], retry
		if l := r.held[e.lo]; l == nil || l.leaving || !r.may(e, now) {
			r.restart = true // it was passed over, and may be ours again
			continue
		}
		if !r.wanted(e.seq, e.aggregate, retry) {
			if r.inMind[e.seq] == nil {
				heldBack++
			}
			continue
		}
		r.inMind[e.seq] = e
		r.bytes += len(e.msg.Payload)
		r.lane(e.aggregate.kind).queue = append(r.lane(e.aggregate.kind).queue, e)
		taken++
	}
	for _, l := range r.lanes {
		r.startLane(l)
	}
	if r.restart {
		poked(r.poke)
	}
	return taken, heldBack
}

// wanted reports whether an event may go to its lane now. If the lane has no
// room, none of its later events may before the reader has gone back to this
// one. It is called with mu held.
func (r *relayRun) wanted(seq int64, a aggregate, retry bool) bool {
	if r.stopped || r.inMind[seq] != nil {
		return false
	}
	b := r.blocked[a]
	if retry {
		return b != nil && b.seq == seq && !b.unsaved
	}
	if b != nil || r.restart {
		return false
	}
	l := r.lane(a.kind)
	if l.resume == 0 && len(l.queue) < r.laneRoom() && !l.waits(time.Now()) {
		return true
	}
	l.passed(seq)
	return false
}

// drop forgets an event. It is called with mu held.
func (r *relayRun) drop(e *event) {
	delete(r.inMind, e.seq)
	r.bytes -= len(e.msg.Payload)
}

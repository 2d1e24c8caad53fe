package outbox

import (
	"context"
	"math"
	"time"
)

// cursor is a place in the outbox from which the reader reads on. Most lanes are
// read together. One that was full, or whose broker is away, goes alone from
// where its events were passed over, until it has caught up: a backlog of one
// topic, however long, keeps no other from what was written behind it.
type cursor struct {
	lane  *lane // nil: all that go together
	floor int64 // seq
	limit int   // how many events to take at most
	gait  *gait
}

// gait is how a cursor comes along.
type gait struct {
	few    int           // how many events a read had room for; 0: as many as it may take
	sparse bool          // most of what was read last was held back
	took   time.Duration // the last read
	due    time.Time     // when to read next; zero unless the last read only passed over events
}

// caughtUp is the place of a lane that goes alone while it is read: nothing was
// passed over yet.
const caughtUp = math.MaxInt64

// alone reports whether the lane is read by a cursor of its own. It is called
// with mu held.
func (l *lane) alone() bool { return l.resume != 0 }

// passed notes that the reader must come back to seq before it takes anything
// of the lane behind it. It is called with mu held.
func (l *lane) passed(seq int64) {
	if l.resume == 0 || seq < l.resume {
		l.resume = seq
	}
}

// goBack sets all cursors back to behind seq. It is called with mu held.
func (r *relayRun) goBack(seq int64) {
	r.floor = min(r.floor, seq)
	for _, l := range r.lanes {
		if l.alone() && seq < l.resume {
			l.resume = seq + 1
		}
	}
}

// cursors are who is to be read now. It is called with mu held.
func (r *reader) cursors(now time.Time) []*cursor {
	var cursors []*cursor
	for _, l := range r.lanes {
		if r.hungry(l, now) && !now.Before(l.gait.due) {
			cursors = append(cursors, &cursor{lane: l, limit: l.gait.room(r.laneRoom() - len(l.queue)), gait: &l.gait})
		}
	}
	if now.Before(r.pack.due) && r.anyAlone() {
		return cursors
	}
	return append(cursors, &cursor{limit: r.pack.room(max(r.cfg.Batch, r.laneRoom()-len(r.inMind))), gait: &r.pack})
}

// room is how many events a read asks for. What it has no room for the database has
// sent in vain: where events are large the next one asks for fewer.
func (g *gait) room(limit int) int {
	if g.few > 0 {
		return min(limit, g.few)
	}
	return limit
}

// learn takes in whether a read had room for all events that it asked for.
func (r *reader) learn(c *cursor, events []*event) (cut bool) {
	g := c.gait
	switch n := len(events); {
	case n > 0 && events[n-1].cut:
		g.few = n
		return true
	case g.few > 0 && n == c.limit:
		if g.few *= 2; g.few >= r.laneRoom() {
			g.few = 0
		}
	}
	return false
}

// hungry reports whether a lane that goes alone takes events now. It is called
// with mu held.
func (r *reader) hungry(l *lane, now time.Time) bool {
	return l.alone() && len(l.queue) <= r.laneRoom()/2 && !l.waits(now)
}

// start puts a cursor where it is to read on.
func (r *reader) start(c *cursor, p *plan) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c.floor = r.floor
	if l := c.lane; l != nil {
		c.floor = l.resume - 1
		l.resume = caughtUp
	}
	c.floor = min(c.floor, p.back)
}

// readFrom reads on from a cursor in all that is ours.
func (r *reader) readFrom(ctx context.Context, c *cursor, p *plan) (found reading, err error) {
	began := time.Now()
	r.start(c, p)
	found.last = c.floor
	behind := int64(-1) // the lowest place that a read came to which did not come to the end
	for _, s := range p.spans {
		got, err := r.readSpan(ctx, c, s, p)
		if err != nil || got.torn {
			return got, err
		}
		found.taken += got.taken
		found.heldBack += got.heldBack
		found.cut = found.cut || got.cut
		if got.more && (behind < 0 || got.last < behind) {
			behind = got.last
		}
		found.last = max(found.last, got.last)
	}
	if behind >= 0 {
		found.more, found.last = true, max(behind, c.floor)
	}
	c.gait.took = time.Since(began)
	c.gait.sparse = r.isSparse(found)
	return found, nil
}

// isSparse reports whether so much of what was read was held back that the next read
// leaves the payloads out. Of large events few fit into one read.
func (r *reader) isSparse(found reading) bool {
	return found.heldBack > found.taken && (found.cut || found.heldBack >= r.cfg.Batch/2)
}

// arrive moves a cursor to where reading came to, or leaves it where it was.
func (r *reader) arrive(c *cursor, p *plan, got reading, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	reached := min(got.last, p.back)
	if err != nil || got.torn {
		reached, got.more = min(c.floor, p.back), true
	}
	c.gait.due = time.Time{}
	if got.more && got.taken == 0 && !got.torn {
		c.gait.due = time.Now().Add(r.pace(c))
	}
	if l := c.lane; l == nil {
		r.more = got.more
		r.floor = reached
		if !r.back && (!got.more || r.floor >= r.from) {
			r.back, r.took = true, time.Since(r.pass)
		}
	} else if got.more || l.resume != caughtUp {
		l.passed(reached + 1)
	} else {
		l.resume = 0
		r.floor = min(r.floor, reached)
	}
}

// pace is how long a cursor rests that only passes over events, longer where there
// is but one lane: nobody that is known waits then. One read that took long, in a
// database that was busy for a moment, keeps nobody waiting for longer than usual.
func (r *reader) pace(c *cursor) time.Duration {
	most := max(r.cfg.Poll, c.gait.took)
	if c.lane == nil && len(r.lanes) == 1 {
		return min(50*c.gait.took, most)
	}
	return min(10*c.gait.took, most)
}

// nextDue is when the next cursor is to be read that only passes over events;
// zero if there is none. It is called with mu held.
func (r *reader) nextDue(now time.Time) time.Time {
	due := r.pack.due
	for _, l := range r.lanes {
		if r.hungry(l, now) && !l.gait.due.IsZero() && (due.IsZero() || l.gait.due.Before(due)) {
			due = l.gait.due
		}
	}
	return due
}

// anyAlone is called with mu held.
func (r *relayRun) anyAlone() bool {
	for _, l := range r.lanes {
		if l.alone() {
			return true
		}
	}
	return false
}

package outbox

import (
	"errors"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/semel-go/semel/breaker"
	"github.com/semel-go/semel/internal/jitter"
)

// lane is the events of one aggregate type on their way to the publisher. A
// slow topic holds up its own lane and no other.
type lane struct {
	kind    string
	queue   []*event
	running bool
	flying  map[aggregate]bool // unordered publisher: what is unconfirmed
	landed  chan struct{}      // unordered: one place, something was confirmed

	resume int64     // seq; the lane's events from here on were passed over, see alone. 0: none
	gait   gait      // while it is alone
	until  time.Time // it publishes nothing before

	breaker    *breaker.Breaker
	pause      *backoff.ExponentialBackOff
	permanents int // refused for good in a row, without a success between
	failures   int // aggregates that came to be blocked by a failure in a row, likewise

	undecoded   int       // aggregates in a row whose key was away, likewise
	undecodedAt time.Time // when that was last logged
}

// maxPermanents is how many events in a row may go into quarantine without one
// that is published. Then it is rather the broker, or what we may do there,
// than the events: nothing more is spent until something is published again.
const maxPermanents = 10

// maxFailures is how many aggregates in a row a failure may block, likewise:
// the events of one type that nobody takes must not fill the memory that those
// of all types share. Those that are blocked are tried again all the same, and
// show when it is better.
const maxFailures = 100

// Why a lane waits that would only fill the quarantine, or block aggregates.
var (
	errManyPermanents = errors.New("one event after the other is refused for good")
	errManyFailures   = errors.New("one event after the other fails")
)

// lane returns the lane of an aggregate type. It is called with mu held.
func (r *relayRun) lane(kind string) *lane {
	l := r.lanes[kind]
	if l == nil {
		l = &lane{
			kind:   kind,
			flying: make(map[aggregate]bool),
			landed: make(chan struct{}, 1),
			pause:  jitter.New(50*time.Millisecond, time.Second),
		}
		l.breaker = breaker.New("outbox "+kind, breaker.Config{
			OpenMax:  2 * time.Second, // events are to go out soon after the broker is back
			OnChange: func(from, to breaker.State) { r.breakerChanged(kind, from, to) },
		})
		r.lanes[kind] = l
	}
	return l
}

// laneRoom is how many events a lane takes before it is full.
func (r *relayRun) laneRoom() int {
	if r.ordered {
		return 4 * r.cfg.Batch
	}
	return max(r.cfg.Window, r.cfg.Batch)
}

// waits reports whether the lane's broker is left alone for now.
func (l *lane) waits(now time.Time) bool { return now.Before(l.until) }

// startLane sees to it that somebody works on the lane. It is called with mu
// held.
func (r *relayRun) startLane(l *lane) {
	if l.running {
		poked(l.landed) // there may be more to take
		return
	}
	if len(l.queue) == 0 || r.stopped {
		return
	}
	l.running = true
	if r.ordered {
		r.publishing.Go(func() { r.inOrder(l) })
	} else {
		r.publishing.Go(func() { r.inParallel(l) })
	}
}

// inOrder publishes a lane batch by batch, until it is empty.
func (r *relayRun) inOrder(l *lane) {
	for {
		batch := r.takeBatch(l, r.cfg.Batch)
		if len(batch) == 0 {
			return
		}
		r.publish(l, batch)
	}
}

// takeBatch takes events from the front of a lane. None: it is empty, and the
// lane rests.
func (r *relayRun) takeBatch(l *lane, n int) []*event {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sift(l, time.Now())
	n = min(n, len(l.queue))
	batch := slices.Clone(l.queue[:n])
	r.shorten(l, l.queue[n:])
	l.running = n > 0
	return batch
}

// sift drops what may not go out now from the whole queue of a lane: what is
// behind an event that was dropped must not be there any more when its
// aggregate, or its lease, may go on. It is called with mu held.
func (r *relayRun) sift(l *lane, now time.Time) {
	l.queue = slices.DeleteFunc(l.queue, func(e *event) bool {
		sendable := r.sendable(e, now)
		if !sendable {
			r.drop(e)
		}
		return !sendable
	})
	if r.restart {
		poked(r.poke)
	}
}

// sendable reports whether a queued event may still go out. It is called with
// mu held.
func (r *relayRun) sendable(e *event, now time.Time) bool {
	if !r.may(e, now) {
		r.restart = true // should the shard be ours again
		return false
	}
	return e.retry || !r.holds(e.aggregate, e.seq)
}

// shorten replaces the queue of a lane by what is left of it, and tells the
// reader when there is room again. It is called with mu held.
func (r *relayRun) shorten(l *lane, left []*event) {
	l.queue = left
	if len(left) == 0 {
		l.queue = nil // let go of the memory behind it
	}
	if l.resume != 0 && len(left) <= r.laneRoom()/2 {
		poked(r.poke)
	}
}

// inParallel publishes a lane event by event, many at once, one of each
// aggregate.
func (r *relayRun) inParallel(l *lane) {
	for {
		for _, e := range r.takeFree(l) {
			r.publishing.Go(func() {
				r.publish(l, []*event{e})
				r.mu.Lock()
				delete(l.flying, e.aggregate)
				r.mu.Unlock()
				poked(l.landed)
			})
		}
		r.mu.Lock()
		if len(l.queue) == 0 && len(l.flying) == 0 {
			l.running = false
			r.mu.Unlock()
			return
		}
		r.mu.Unlock()
		<-l.landed // something is unconfirmed, so something will land
	}
}

// takeFree takes the events whose aggregates have none unconfirmed.
func (r *relayRun) takeFree(l *lane) []*event {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sift(l, time.Now())
	var taken []*event
	window := r.window()
	left := l.queue[:0]
	for _, e := range l.queue {
		if l.flying[e.aggregate] || len(l.flying) >= window {
			left = append(left, e)
			continue
		}
		l.flying[e.aggregate] = true
		taken = append(taken, e)
	}
	clear(l.queue[len(left):])
	r.shorten(l, left)
	return taken
}

// window is how many events of a lane may be unconfirmed: what the publisher sends
// at once is shared by the lanes that run. It is called with mu held, by one of
// them.
func (r *relayRun) window() int {
	running := 0
	for _, l := range r.lanes {
		if l.running {
			running++
		}
	}
	return min(r.cfg.Window, max(1, r.atOnce/max(1, running)))
}

// dropQueue forgets what waits in a lane; the reader finds it again. It is
// called with mu held.
func (r *relayRun) dropQueue(l *lane) {
	for _, e := range l.queue {
		r.passOver(l, e)
	}
	l.queue = nil
}

// passOver puts an event back where it came from: the reader must come to it
// again before any later one of its lane. It is called with mu held.
func (r *relayRun) passOver(l *lane, e *event) {
	r.drop(e)
	if !e.retry {
		l.passed(e.seq)
	}
}

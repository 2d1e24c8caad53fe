package rabbitmq

import (
	"slices"
	"sync"
	"time"
)

// ackLinger is how long an acknowledgement may wait for others to go with.
const ackLinger = 5 * time.Millisecond

// acks acknowledges the settled deliveries of one channel: many with one frame
// where the deliveries before them are answered too, for a frame costs both
// sides as much as the message. It waits for company only while there is more
// to come: what is out when the last delivery ends is acknowledged at once.
//
// It knows what is out from the tags, which the broker gives to the deliveries
// of a channel in order, without a gap. It is safe for concurrent use.
type acks struct {
	ch   *channel
	full int // how many settled ones are not kept waiting

	// sending is held while acknowledgements are chosen and sent. The broker
	// closes a channel on which an earlier one follows a later one that included it.
	sending sync.Mutex

	mu      sync.Mutex // guards what follows
	first   *delivery  // of those that are out, in the order of their tags
	last    *delivery
	newest  uint64 // the tag that came last
	settled []settledTag
	round   uint64 // counts the sendings
	armed   bool   // a sending is due
}

// settledTag is a delivery that is settled and not yet acknowledged.
type settledTag struct {
	tag   uint64
	round uint64 // in which it was settled
}

func newAcks(ch *channel, prefetch int) *acks {
	return &acks{ch: ch, full: max(prefetch/4, 1)}
}

// take notes that d is out. Deliveries are taken in the order they came.
func (a *acks) take(d *delivery) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if d.tag > a.newest+1 { // the client library has dropped some, which the broker still has out
		a.append(&delivery{tag: a.newest + 1})
	}
	a.newest = d.tag
	a.append(d)
}

func (a *acks) append(d *delivery) {
	if d.before = a.last; a.last != nil {
		a.last.after = d
	} else {
		a.first = d
	}
	a.last = d
}

// settle notes that d may be acknowledged.
func (a *acks) settle(d *delivery) {
	a.mu.Lock()
	a.settled = append(a.settled, settledTag{d.tag, a.round})
	a.end(d)
}

// drop notes that d was answered otherwise. The answer has been sent: else an
// acknowledgement that includes d could be faster.
func (a *acks) drop(d *delivery) {
	a.mu.Lock()
	a.end(d)
}

// end takes d out, and sees to it that what is settled is acknowledged. It is
// called with mu held, and releases it.
func (a *acks) end(d *delivery) {
	if d.before != nil {
		d.before.after = d.after
	} else {
		a.first = d.after
	}
	if d.after != nil {
		d.after.before = d.before
	} else {
		a.last = d.before
	}
	d.before, d.after = nil, nil

	now := len(a.settled) >= a.full || a.first == nil && len(a.settled) > 0
	a.arm()
	a.mu.Unlock()
	if now {
		a.send(false)
	}
}

// arm has what is settled sent soon. It is called with mu held.
func (a *acks) arm() {
	if a.armed || len(a.settled) == 0 {
		return
	}
	a.armed = true
	time.AfterFunc(ackLinger, func() {
		a.mu.Lock()
		a.armed = false
		a.mu.Unlock()
		a.send(false)
	})
}

// flush acknowledges all that is settled.
func (a *acks) flush() { a.send(true) }

// send acknowledges what can be acknowledged together, and one by one what has
// waited in vain, or all the rest. An error is no loss: then the channel has
// ended, and the broker delivers again what it had out on it.
func (a *acks) send(all bool) {
	a.sending.Lock()
	defer a.sending.Unlock()
	upTo, singly := a.choose(all)
	if upTo != 0 {
		_ = a.ch.Ack(upTo, true)
	}
	for _, tag := range singly {
		_ = a.ch.Ack(tag, false)
	}
}

// choose takes out of settled what is to be acknowledged now. The others are
// kept for two rounds: what lies before them will mostly have ended then.
func (a *acks) choose(all bool) (upTo uint64, singly []uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	lowest := a.newest + 1
	if a.first != nil {
		lowest = a.first.tag
	}
	kept := a.settled[:0]
	for _, s := range a.settled {
		switch {
		case together(s.tag, lowest):
			upTo = max(upTo, s.tag)
		case all || s.round+1 < a.round:
			singly = append(singly, s.tag)
		default:
			kept = append(kept, s)
		}
	}
	a.settled = kept
	a.round++
	a.arm()
	slices.Sort(singly)
	return upTo, singly
}

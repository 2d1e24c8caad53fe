package kafka

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/internal/jitter"
)

// Pauses before what was returned, or refused by the sink, is delivered again.
const (
	againBase = 50 * time.Millisecond
	againMax  = time.Second
)

// partition names a partition.
type partition struct {
	topic string
	id    int32
}

// assignment is one partition from the moment the group gave it to this
// member until it took it away. A partition that comes back is a new
// assignment; deliveries of the old one end without effect.
//
// A worker delivers its records one after the other, so that a sink that
// blocks holds up this partition and nothing else: not the poll loop, not a
// rebalance, no other partition.
type assignment struct {
	partition partition
	member    *member
	revoked   chan struct{} // closed when the assignment ends
	idle      chan struct{} // closed when it has ended and nothing of it is out
	wake      chan struct{} // tells the worker to look again; one pending signal is enough
	stop      context.CancelFunc

	mu       sync.Mutex // guards the fields below
	tracker  tracker
	suspects suspicion
	told     string // what the commit that the broker has says about its owner; see ownerRunning
	topicID  topicID
	queue    []*entry // fetched, not handed out yet
	again    []*entry // to be handed out again, by offset; before queue
	notYet   time.Time
	backoff  *backoff.ExponentialBackOff
	out      int  // handed out, neither settled nor returned
	back     bool // one came back, and not all that were out with it have ended
	held     bool // not fetched because the window is full
	ended    bool
}

func newAssignment(m *member, p partition, stop context.CancelFunc) *assignment {
	return &assignment{
		partition: p,
		member:    m,
		revoked:   make(chan struct{}),
		idle:      make(chan struct{}),
		wake:      make(chan struct{}, 1),
		stop:      stop,
		tracker:   tracker{next: unknown},
		backoff:   jitter.New(againBase, againMax),
	}
}

// work delivers records until ctx ends.
func (a *assignment) work(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		d, wait := a.next()
		if d != nil {
			if err := a.member.sink.Deliver(ctx, d.forSink()); err != nil {
				d.refused(err)
			}
			continue
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
		case <-a.wake:
		case <-timer.C:
		}
	}
}

// next takes the next record to hand out, or says how long there is none for
// sure unless the worker is woken. While one that came back waits, the newer
// ones wait behind it: they may be of its key. It waits itself until what was
// out with it has ended: of that, something before it may come back too. And all
// wait until the broker knows that records are handed out, or a crash before the
// next commit would go unseen.
func (a *assignment) next() (d *delivery, wait time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	const untilWoken = time.Hour
	if a.ended || a.back || a.told != ownerRunning || a.member.source.paused.Load() {
		return nil, untilWoken
	}
	from := &a.queue
	if len(a.again) > 0 {
		if wait := time.Until(a.notYet); wait > 0 {
			return nil, wait
		}
		from = &a.again
	}
	if len(*from) == 0 {
		return nil, untilWoken
	}
	e := (*from)[0]
	(*from)[0] = nil // or the array behind the slice keeps it alive
	*from = (*from)[1:]
	a.out++
	a.member.out.Add(1)
	return &delivery{assignment: a, entry: e, topicID: a.topicID}, 0
}

// startAt says which offset the group has committed, and what its owner said of
// itself. It reports whether that one may have died.
func (a *assignment) startAt(committed int64, told string) (suspected bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.tracker.next != unknown {
		return false
	}
	a.tracker.next, a.told = committed, told
	if told != ownerRunning {
		return false
	}
	a.suspects = suspect(a.member.reach())
	return true
}

// add takes what was fetched, at least one record. It never blocks. It returns
// the offset it expected, how many records were deleted before they could be
// fetched, and false if the log was rewound: then it took nothing, and the
// assignment must be replaced.
func (a *assignment) add(f *kgo.FetchPartition, id topicID) (expected, lost int64, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	first, expected := f.Records[0].Offset, a.tracker.next
	if a.ended {
		return expected, 0, true // fetched before it was revoked: whoever has the partition now fetches it
	}
	if !a.tracker.follows(first) {
		return expected, 0, false
	}
	if expected != unknown && expected < f.LogStartOffset {
		lost = min(first, f.LogStartOffset) - expected
	}
	a.topicID = id
	a.suspects.logEnds(f.HighWatermark)
	for _, r := range f.Records {
		e := a.tracker.take(r)
		e.delivered = a.suspects.covers(r.Offset)
		if r.Attrs.IsControl() {
			a.tracker.settle(e) // taken only so that the commit gets past the end of a transaction
			continue
		}
		a.queue = append(a.queue, e)
	}
	limit := a.member.share()
	if w := a.tracker.window(); !a.held && (w.records >= limit.records || w.bytes >= limit.bytes) {
		a.held = true
		a.member.client.PauseFetchPartitions(a.partition.set())
	}
	if a.told != ownerRunning {
		a.member.commits.hurry()
	}
	a.signal()
	return expected, lost, true
}

// comeBack keeps an entry to be handed out again, if the partition is still ours.
func (a *assignment) comeBack(e *entry) {
	if a.ended {
		return
	}
	e.delivered, a.back = true, true
	i, _ := slices.BinarySearchFunc(a.again, e, func(a, b *entry) int { return cmp.Compare(a.offset, b.offset) })
	a.again = slices.Insert(a.again, i, e)
	// Half of it fixed: those that come back together have time to arrive and
	// to be put in order.
	a.notYet = time.Now().Add(againBase/2 + a.backoff.NextBackOff())
	a.signal()
}

// end stops the assignment: its worker ends, what is out may finish.
func (a *assignment) end() {
	a.stop()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended {
		return
	}
	a.ended = true
	a.queue, a.again = nil, nil
	close(a.revoked)
	if a.out == 0 {
		close(a.idle)
	}
	a.unhold() // a pause outlives the assignment in the client
}

// position returns what may be committed. Unless all is true, it is silent
// about what the broker has already.
func (a *assignment) position(all bool) (m mark, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	m, ok = a.tracker.position()
	m.owner = ownerRunning
	if a.ended && a.out == 0 && a.suspects.over(m.offset.Offset) {
		m.owner = ownerDrained
	}
	return m, ok && (all || m.owner != a.told || a.tracker.uncommitted().records > 0)
}

// committed notes that the broker has m, lets records be handed out if it was
// the first commit, and lets the partition be fetched again when half of its
// window is free.
func (a *assignment) committed(m mark) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tracker.commit(m)
	if a.told != m.owner {
		a.told = m.owner
		a.signal()
	}
	limit := a.member.share()
	if w := a.tracker.window(); w.records <= limit.records/2 && w.bytes <= limit.bytes/2 {
		a.unhold()
	}
}

func (a *assignment) unhold() {
	if a.held {
		a.held = false
		a.member.client.ResumeFetchPartitions(a.partition.set())
	}
}

// signal wakes the worker.
func (a *assignment) signal() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

func (p partition) set() map[string][]int32 { return map[string][]int32{p.topic: {p.id}} }

// delivery is one hand-out of an entry.
type delivery struct {
	assignment *assignment
	entry      *entry
	topicID    topicID
	ended      bool // guarded by the assignment's mutex
}

func (d *delivery) forSink() *handler.Delivery {
	a := d.assignment
	return &handler.Delivery{
		Message:  message(d.entry.record, d.topicID, d.entry.delivered),
		Settled:  d.settled,
		Returned: d.returned,
		Revoked:  a.revoked,
	}
}

func (d *delivery) settled() {
	d.finish(func(a *assignment) {
		a.tracker.settle(d.entry)
		a.backoff.Reset()
		u, limit := a.tracker.uncommitted(), a.member.share()
		if 2*u.records >= limit.records || 2*u.bytes >= limit.bytes {
			a.member.commits.hurry()
		}
	})
}

func (d *delivery) returned(error) {
	d.finish(func(a *assignment) { a.comeBack(d.entry) })
}

// refused ends a delivery that the sink did not take.
func (d *delivery) refused(error) {
	d.finish(func(a *assignment) {
		again := d.entry.delivered
		a.comeBack(d.entry)
		d.entry.delivered = again
	})
}

// finish ends d, once, with what became of it.
func (d *delivery) finish(became func(*assignment)) {
	a := d.assignment
	a.mu.Lock()
	defer a.mu.Unlock()
	if d.ended {
		return
	}
	d.ended = true
	became(a)
	if a.out--; a.out == 0 {
		a.back = false
		a.signal()
		if a.ended {
			close(a.idle)
		}
	}
	a.member.out.Done()
}

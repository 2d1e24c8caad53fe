package memory

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/internal/jitter"
)

var (
	_ handler.Source        = (*Source)(nil)
	_ handler.Pauser        = (*Source)(nil)
	_ handler.OrderedSource = (*Source)(nil)
)

// ErrAborted is returned by [Source.Run] when [Source.Abort] ended it.
var ErrAborted = errors.New("source was aborted")

// Pauses before a message is offered again to a sink that refused one.
const (
	refusalBase = 10 * time.Millisecond
	refusalMax  = time.Second
)

// Source takes messages from a [Queue] and hands them to a sink, as one
// consumer among those of the queue. Make one with [NewSource].
type Source struct {
	queue  *Queue
	paused bool // guarded by queue.mu
	run    *run // the Run that is going on, or nil; guarded by queue.mu
}

// run is one call of [Source.Run].
type run struct {
	queue   *Queue
	out     map[*handler.Delivery]*entry // neither settled nor returned; guarded by queue.mu
	aborted chan struct{}
	abort   context.CancelCauseFunc
}

// NewSource returns a source of queue's messages.
func NewSource(queue *Queue) *Source {
	return &Source{queue: queue}
}

// Run delivers messages to sink until ctx ends. Then it takes no more, waits
// until all that it handed out are settled or returned, and returns nil. It
// may be called again after that, but not twice at once.
//
// A message that sink refuses goes back to the queue and is offered again
// after a short pause.
func (s *Source) Run(ctx context.Context, sink handler.Sink) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r := &run{queue: s.queue, out: map[*handler.Delivery]*entry{}, aborted: make(chan struct{}), abort: cancel}
	if !s.start(r) {
		return fmt.Errorf("run a source of queue %q: it runs already: make one source for each Run", s.queue.name)
	}
	defer s.stop()

	refusals := jitter.New(refusalBase, refusalMax)
	for {
		d := s.take(ctx, r)
		if d == nil {
			return r.wait()
		}
		if err := sink.Deliver(ctx, d); err == nil {
			refusals.Reset()
			continue
		}
		r.end(d, func(e *entry) { s.queue.putBack(e) })
		select {
		case <-time.After(refusals.NextBackOff()):
		case <-ctx.Done():
		}
	}
}

// Pause stops the source from taking messages. One that it has taken already
// may still be delivered.
func (s *Source) Pause() {
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	s.paused = true
	s.queue.notify() // it may be the turn of another
}

// Resume ends a [Source.Pause].
func (s *Source) Resume() {
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	s.paused = false
	s.queue.notify()
}

// Abort ends Run as the death of its process would, for tests: what it handed
// out goes back to the queue although it is not settled, Revoked is closed,
// later calls of Settled and Returned have no effect, and Run returns
// [ErrAborted] without waiting. It does nothing while Run is not running.
func (s *Source) Abort() {
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	r := s.run
	if r == nil {
		return
	}
	select {
	case <-r.aborted:
		return
	default:
	}
	for _, e := range r.out {
		e.delivered = true
		s.queue.putBack(e)
	}
	clear(r.out)
	close(r.aborted)
	r.abort(ErrAborted)
	s.queue.notify()
}

// KeepsOrder implements [handler.OrderedSource]: as long as a message of a key is
// out, no other source is handed one of that key.
func (s *Source) KeepsOrder() error { return nil }

func (s *Source) start(r *run) bool {
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	if s.run != nil {
		return false
	}
	s.run = r
	return true
}

func (s *Source) stop() {
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	s.run = nil
}

// take waits for its turn and for a message, and counts the message as handed
// out. It returns nil when ctx ends. Without turns, one of several idle sources
// would win nearly every message.
func (s *Source) take(ctx context.Context, r *run) *handler.Delivery {
	q := s.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	q.line = append(q.line, s)
	defer s.leaveLine()
	for {
		if ctx.Err() != nil {
			return nil
		}
		if i := q.next(s); i >= 0 {
			e := q.ready[i]
			if i == 0 {
				q.ready[0] = nil // or the array behind the slice keeps it alive
				q.ready = q.ready[1:]
			} else {
				q.ready = slices.Delete(q.ready, i, i+1)
			}
			return r.delivery(e)
		}
		changed := q.change()
		q.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		q.mu.Lock()
	}
}

// leaveLine lets the next one have its turn. Callers hold queue.mu.
func (s *Source) leaveLine() {
	q := s.queue
	q.line = slices.DeleteFunc(q.line, func(other *Source) bool { return other == s })
	if len(q.ready) > 0 {
		q.notify()
	}
}

// delivery hands an entry out. Callers hold the queue's mutex.
func (r *run) delivery(e *entry) *handler.Delivery {
	d := &handler.Delivery{Message: clone(e.message), Revoked: r.aborted}
	d.Message.Origin.Redelivered = e.delivered
	d.Settled = func() { r.end(d, func(e *entry) { r.queue.unsettled--; r.queue.ended(e, false) }) }
	d.Returned = func(error) { r.end(d, func(e *entry) { e.delivered = true; r.queue.putBack(e) }) }
	r.out[d] = e
	r.queue.handOut(e, r)
	return d
}

// end takes a delivery off those handed out and does with its entry what
// became of it. It does nothing for one that ended before, or was aborted.
func (r *run) end(d *handler.Delivery, became func(*entry)) {
	r.queue.mu.Lock()
	defer r.queue.mu.Unlock()
	e, ok := r.out[d]
	if !ok {
		return
	}
	delete(r.out, d)
	became(e)
	r.queue.notify()
}

// wait blocks until nothing is handed out any more.
func (r *run) wait() error {
	for {
		r.queue.mu.Lock()
		out, changed := len(r.out), r.queue.change()
		r.queue.mu.Unlock()
		select {
		case <-r.aborted:
			return ErrAborted
		default:
		}
		if out == 0 {
			return nil
		}
		<-changed
	}
}

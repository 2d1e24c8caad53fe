package transporttest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel/handler"
)

var _ handler.Sink = (*Sink)(nil)

// ErrRefused is what a test may give to [Sink.Refuse] when it has nothing
// better to say.
var ErrRefused = errors.New("sink takes no more")

var errIncomplete = errors.New("delivery is not complete")

// SinkConfig configures a [Sink]. The zero value takes every delivery and
// leaves it to the test.
type SinkConfig struct {
	// Settle settles each delivery before Deliver returns.
	Settle bool

	// Limit is how many deliveries may be out before Deliver blocks, as a full
	// engine does. Zero is no limit.
	Limit int

	// Deadline bounds every wait. Defaults to a minute.
	Deadline time.Duration
}

// Sink is a [handler.Sink] under the control of a test: deliveries wait in it
// until the test takes them with [Sink.Next] and ends them as it likes. It is
// safe for concurrent use.
type Sink struct {
	config SinkConfig

	mu      sync.Mutex // guards the fields below
	arrived []*handler.Message
	waiting []*handler.Delivery        // not taken by the test yet
	out     map[*handler.Delivery]bool // neither settled nor returned
	blocked int                        // calls of Deliver that wait for room
	inside  int                        // calls of Deliver
	refuse  error
	over    bool          // Run has returned
	faults  []string      // what the source did against the contract
	changed chan struct{} // closed at the next change
}

// NewSink returns a sink.
func NewSink(config SinkConfig) *Sink {
	if config.Deadline == 0 {
		config.Deadline = defaultDeadline
	}
	return &Sink{config: config, out: map[*handler.Delivery]bool{}, changed: make(chan struct{})}
}

// Deliver takes d over.
func (s *Sink) Deliver(ctx context.Context, d *handler.Delivery) error {
	s.update(func() {
		s.inside++
		if s.over {
			s.faults = append(s.faults, "Deliver was called after Run had returned")
		}
	})
	defer s.update(func() { s.inside-- })
	if d == nil || d.Message == nil || d.Settled == nil || d.Returned == nil {
		s.update(func() { s.faults = append(s.faults, "a delivery lacks its Message, Settled or Returned") })
		return errIncomplete
	}

	if err := s.admit(ctx, d); err != nil {
		return err
	}
	if s.config.Settle {
		d.Settled()
	}
	return nil
}

// admit waits for room and puts d among the waiting.
func (s *Sink) admit(ctx context.Context, d *handler.Delivery) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.refuse != nil:
			return s.refuse
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case s.config.Limit == 0 || len(s.out) < s.config.Limit:
			s.own(d)
			s.arrived = append(s.arrived, d.Message)
			if !s.config.Settle {
				s.waiting = append(s.waiting, d)
			}
			s.notify()
			return nil
		}
		s.blocked++
		s.notify()
		changed := s.changed
		s.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		s.mu.Lock()
		s.blocked--
	}
}

// own makes the sink count d as out until one of its functions is called, and
// lets only the first call through, as the contract promises the source.
func (s *Sink) own(d *handler.Delivery) {
	s.out[d] = true
	settled, returned := d.Settled, d.Returned
	first := func() (ok bool) {
		s.update(func() {
			ok = s.out[d]
			delete(s.out, d)
		})
		return ok
	}
	d.Settled = func() {
		if first() {
			settled()
		}
	}
	d.Returned = func(err error) {
		if first() {
			returned(err)
		}
	}
}

// Next takes the oldest delivery that waits, or waits for one; the test fails
// at the deadline. The test ends the delivery.
func (s *Sink) Next(t testing.TB) *handler.Delivery {
	t.Helper()
	return s.next(t, nil)
}

// next is Next; it also fails when ended is closed while nothing waits.
func (s *Sink) next(t testing.TB, ended <-chan struct{}) *handler.Delivery {
	t.Helper()
	var d *handler.Delivery
	s.await(t, "a delivery", ended, func() bool {
		if len(s.waiting) == 0 {
			return false
		}
		d, s.waiting = s.waiting[0], s.waiting[1:]
		return true
	})
	return d
}

// AwaitBlocked waits until a call of Deliver blocks because the limit is
// reached.
func (s *Sink) AwaitBlocked(t testing.TB) {
	t.Helper()
	s.await(t, "a delivery above the limit", nil, func() bool { return s.blocked > 0 })
}

// RequireQuiet fails the test if a delivery waits, or arrives within a moment.
func (s *Sink) RequireQuiet(t testing.TB) {
	t.Helper()
	over := time.NewTimer(quiet)
	defer over.Stop()
	for {
		s.mu.Lock()
		changed := s.changed
		if len(s.waiting) > 0 {
			id := s.waiting[0].Message.ID
			s.mu.Unlock()
			t.Fatalf("message %.255q was delivered where nothing must be", id)
		}
		s.mu.Unlock()
		select {
		case <-changed:
		case <-over.C:
			return
		}
	}
}

// Refuse makes every call of Deliver fail with err, also those that block. Nil
// ends that.
func (s *Sink) Refuse(err error) {
	s.update(func() { s.refuse = err })
}

// ReturnAll returns every delivery that is out, and drops those that wait.
func (s *Sink) ReturnAll(err error) {
	s.mu.Lock()
	var all []*handler.Delivery
	for d := range s.out {
		all = append(all, d)
	}
	s.waiting = nil
	s.mu.Unlock()
	for _, d := range all {
		d.Returned(err)
	}
}

// Arrived returns the messages of all deliveries so far, in order of arrival.
func (s *Sink) Arrived() []*handler.Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.arrived)
}

// Out returns how many deliveries are neither settled nor returned.
func (s *Sink) Out() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.out)
}

// RunReturned tells the sink that its source's Run has returned: any further
// call of Deliver is a fault. It is one already if a call goes on.
func (s *Sink) RunReturned() {
	s.update(func() {
		s.over = true
		if s.inside > 0 {
			s.faults = append(s.faults, "Run returned while it called Deliver")
		}
	})
}

// RequireNoFault fails the test if the source broke the contract in a way that
// a sink can see.
func (s *Sink) RequireNoFault(t testing.TB) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, fault := range s.faults {
		t.Errorf("the source broke its contract: %s", fault)
	}
}

// await waits until ok, which is called with the mutex held, reports true.
func (s *Sink) await(t testing.TB, what string, ended <-chan struct{}, ok func() bool) {
	t.Helper()
	deadline := time.NewTimer(s.config.Deadline)
	defer deadline.Stop()
	for {
		s.mu.Lock()
		done, changed, arrived := ok(), s.changed, len(s.arrived)
		s.mu.Unlock()
		if done {
			return
		}
		select {
		case <-changed:
		case <-ended:
			t.Fatalf("waited for %s, and Run returned; %d messages arrived before", what, arrived)
		case <-deadline.C:
			t.Fatalf("waited %s for %s; %d messages arrived before", s.config.Deadline, what, arrived)
		}
	}
}

func (s *Sink) update(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
	s.notify()
}

// notify wakes everybody who waits for a change. Callers hold s.mu.
func (s *Sink) notify() {
	close(s.changed)
	s.changed = make(chan struct{})
}

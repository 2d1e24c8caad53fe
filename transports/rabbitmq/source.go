package rabbitmq

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/semel-go/semel/handler"
)

var (
	_ handler.Source        = (*Source)(nil)
	_ handler.Pauser        = (*Source)(nil)
	_ handler.OrderedSource = (*Source)(nil)
)

// Source consumes one queue. Make one with [NewSource].
type Source struct {
	config  SourceConfig
	status  status
	flight  flight
	running atomic.Bool

	mu     sync.Mutex
	paused bool          // guarded by mu
	turned chan struct{} // guarded by mu; closed and replaced when paused changes
}

// NewSource returns a source for config. It does no I/O: an impossible config
// is reported by [Source.Run].
func NewSource(config SourceConfig) *Source {
	return &Source{config: config, turned: make(chan struct{})}
}

// Run consumes the queue and delivers to sink until ctx ends. Then it cancels
// the consumer, gives back what it has not handed out, waits up to
// [SourceConfig.DrainTimeout] until the rest is settled or returned, closes the
// connection so that the acknowledgements have arrived, and returns nil. It
// does so in that time also while the broker is away; what could not be
// acknowledged comes again.
//
// It returns an error for an impossible config, for a configuration the broker
// refuses (see the package comment), and when deliveries were still out at the
// end of the drain timeout.
func (s *Source) Run(ctx context.Context, sink handler.Sink) error {
	config, err := s.config.withDefaults()
	if err != nil {
		return fmt.Errorf("rabbitmq source: %w", err)
	}
	if !s.running.CompareAndSwap(false, true) {
		return fmt.Errorf("consume queue %q: this source is running already", config.Queue)
	}
	defer s.running.Store(false)
	defer s.status.set(Stopped)

	consumed := false // from then on nothing the broker says ends Run
	supervisor := newSupervisor(config.link(), &s.status, func(error) bool { return !consumed })
	c := &consumer{Source: s, config: config, sink: sink, works: func(state State) {
		consumed = consumed || state == Consuming
		supervisor.works(ctx, state)
	}}
	err = supervisor.run(ctx, c.consume)
	if err != nil {
		err = fmt.Errorf("consume queue %q: %w", config.Queue, err)
	}
	if !c.drained() && err == nil {
		err = fmt.Errorf("drain queue %q: %d deliveries were neither settled nor returned within %s; the broker delivers them again",
			config.Queue, s.flight.count(), config.DrainTimeout)
	}
	return err
}

// Pause implements [handler.Pauser]: it cancels the consumer and revokes what
// was handed out, so that the engine gives back what it has not started. The
// connection, and with it the acknowledgement of what is running, stays. A
// source that keeps order gives back when nothing runs any more. (The
// broker deletes a queue that was declared auto-delete when its last consumer
// is cancelled: do not use such a queue for messages that matter.)
func (s *Source) Pause() { s.turn(true) }

// PauseRecalls implements [handler.RecallingPauser].
func (s *Source) PauseRecalls() bool { return true }

// Resume implements [handler.Pauser]: it consumes again.
func (s *Source) Resume() { s.turn(false) }

func (s *Source) turn(paused bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.paused != paused {
		s.paused = paused
		close(s.turned)
		s.turned = make(chan struct{})
	}
}

// isPaused also returns the channel that is closed at the next change.
func (s *Source) isPaused() (bool, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.paused, s.turned
}

// Stats returns a snapshot.
func (s *Source) Stats() Stats {
	stats := s.status.snapshot()
	stats.InFlight = s.flight.count()
	return stats
}

// drained waits until nothing is out any more, at most until the drain timeout
// has passed since it was first called.
func (c *consumer) drained() bool {
	if c.drainBy.IsZero() && c.config.DrainTimeout > 0 {
		c.drainBy = time.Now().Add(c.config.DrainTimeout)
	}
	return c.flight.wait(c.drainBy)
}

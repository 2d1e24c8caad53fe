package rabbitmq

import (
	"sync"
	"time"
)

// State is what a source or a publisher is doing.
type State string

// The states. Only in Consuming and Publishing do messages move.
const (
	Stopped    State = "stopped"    // not running, or not used yet
	Connecting State = "connecting" // no connection, or no channel that works yet
	Waiting    State = "waiting"    // connected; another consumer has the queue for itself
	Consuming  State = "consuming"
	Paused     State = "paused" // connected, and consuming nothing until resumed
	Draining   State = "draining"
	Publishing State = "publishing"
	Blocked    State = "blocked" // the broker takes no messages until its memory or disk alarm is over
)

// Stats is a snapshot of a [Source] or a [Publisher].
type Stats struct {
	// State is what it is doing, Since when it began to.
	State State
	Since time.Time

	// LastError is the last thing that ended a connection or a channel, and
	// LastErrorAt when. It stays when things work again.
	LastError   error
	LastErrorAt time.Time

	// Failures counts the connections and channels that have ended or could
	// not be made.
	Failures uint64

	// InFlight is how many messages are out: handed to the engine and neither
	// settled nor returned, or sent and not confirmed.
	InFlight int
}

// status is the part of [Stats] that changes with the connection. It is safe
// for concurrent use.
type status struct {
	mu    sync.Mutex
	stats Stats // guarded by mu
}

func (s *status) set(state State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stats.State != state {
		s.stats.State, s.stats.Since = state, time.Now()
	}
}

func (s *status) failed(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if s.stats.State != Connecting {
		s.stats.State, s.stats.Since = Connecting, now
	}
	s.stats.LastError, s.stats.LastErrorAt = err, now
	s.stats.Failures++
}

// waits notes why it has to wait although the connection works.
func (s *status) waits(err error) {
	s.set(Waiting)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.LastError, s.stats.LastErrorAt = err, time.Now()
}

func (s *status) snapshot() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	stats := s.stats
	if stats.State == "" {
		stats.State = Stopped
	}
	return stats
}

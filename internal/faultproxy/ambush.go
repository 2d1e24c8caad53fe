package faultproxy

import (
	"sync"
	"testing"
)

// Side is where a frame comes from.
type Side int

// The sides of a connection.
const (
	FromClient Side = iota + 1
	FromServer
)

// Moment is when a connection is cut, as the one sees it whom the frame is for.
// Either way the other side hears nothing any more: no answer to this frame,
// and none that was on its way.
type Moment int

// The moments.
const (
	Before Moment = iota + 1 // all before the frame arrives, and nothing of it
	Amid                     // half of it arrives
	After                    // it arrives, and is the last that does
)

// String names the moment.
func (m Moment) String() string {
	return [...]string{Before: "before", Amid: "amid", After: "after"}[m]
}

// Ambush counts frames, and cuts the connection of one of them. It is safe for
// concurrent use.
type Ambush struct {
	side   Side
	at     int
	moment Moment
	match  func(frame []byte) bool
	sprung chan struct{}

	mu    sync.Mutex // guards the fields below, and is held while match runs
	count int
}

// NewFramed starts a proxy as [New] does, before a server whose protocol it
// knows.
func NewFramed(tb testing.TB, upstream string, framing Framing) *Proxy {
	tb.Helper()
	return start(tb, upstream, framing)
}

// Ambush lies in wait for the frame of side that is the at-th for which match
// is true; nil is all frames. 0 never cuts and only counts. A new call replaces
// the one before, and each cuts once.
//
// match sees the frames of all connections, one at a time and before they go
// on, and must not keep them.
func (p *Proxy) Ambush(side Side, at int, moment Moment, match func(frame []byte) bool) *Ambush {
	a := &Ambush{side: side, at: at, moment: moment, match: match, sprung: make(chan struct{})}
	p.ambush.Store(a)
	return a
}

// Lift ends the ambush: frames pass and are not counted.
func (p *Proxy) Lift() { p.ambush.Store(nil) }

// Count is how many frames there were.
func (a *Ambush) Count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.count
}

// Sprung is closed when the connection was cut.
func (a *Ambush) Sprung() <-chan struct{} { return a.sprung }

// meets reports whether this is the frame that the ambush waits for.
func (a *Ambush) meets(side Side, frame []byte) bool {
	if a == nil || side != a.side {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.match != nil && !a.match(frame) {
		return false
	}
	a.count++
	return a.count == a.at
}

// passes is how much of a frame arrives that the ambush waited for.
func (a *Ambush) passes(frame []byte) int {
	switch a.moment {
	case Before:
		return 0
	case Amid:
		return len(frame) / 2
	default:
		return len(frame)
	}
}

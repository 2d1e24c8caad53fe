package main

import (
	"context"
	"encoding/json"
	"io"
	"slices"
	"sync"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
	"github.com/semel-go/semel/internal/chaos/wire"
)

// trap holds a message at the point it is armed for, and reports it. Only the
// goroutine of that message stops; the rest of the process goes on until it is
// killed.
type trap struct {
	mu      sync.Mutex // guards the fields below; reports are written under it, in the order of what happened
	reports *json.Encoder
	order   wire.Order
	held    bool                 // a message is held for MidDrain
	copy    int                  // which one
	doing   map[int][]wire.Point // points of the inbox, by copy: what is being done with it
	taken   int                  // from the inbox, since it was armed
	leased  int                  // of the inbox, taken and not settled
	sourced map[*handler.Message]bool
}

func newTrap(w io.Writer) *trap {
	return &trap{reports: json.NewEncoder(w), doing: map[int][]wire.Point{}, sourced: map[*handler.Message]bool{}}
}

func (t *trap) arm(o wire.Order) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.order, t.taken = o, 0
	t.write(wire.Armed, noCopy)
}

// noCopy is reported where it is not about one message.
const noCopy = -1

// begins notes what is being done with a copy, until it is settled.
func (t *trap) begins(doing wire.Point, n int) {
	t.mu.Lock()
	t.doing[n] = append(t.doing[n], doing)
	t.mu.Unlock()
	t.pass(wire.AfterClaim, n)
}

// comes and goes tell which messages the source has out.
func (t *trap) comes(msg *handler.Message) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sourced[msg] = true
}

func (t *trap) goes(msg *handler.Message) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.sourced, msg)
}

// ends notes that a message is settled. If the source does not have it out, it was
// taken from the inbox.
func (t *trap) ends(msg *handler.Message) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.doing, wire.CopyOf(msg))
	if !t.sourced[msg] {
		t.lease(-1)
	}
}

func (t *trap) lease(more int) {
	t.leased += more
	_ = t.reports.Encode(wire.Report{Kind: wire.Leased, Copy: noCopy, Leased: t.leased})
}

// report tells the parent. A parent that does not listen any more is gone, and
// so will we be.
func (t *trap) report(kind wire.Kind, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.write(kind, n)
}

func (t *trap) write(kind wire.Kind, n int) { _ = t.reports.Encode(wire.Report{Kind: kind, Copy: n}) }

// pass is called when a copy reaches a point. It does not return if the trap
// springs.
func (t *trap) pass(point wire.Point, n int) {
	if t.springs(point, n) {
		select {}
	}
}

func (t *trap) springs(point wire.Point, n int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	o := &t.order
	switch {
	case o.Point == wire.Worker500 && point == wire.AfterClaim:
		return true // no worker gets through, until the crowd is complete
	case o.Point.OfInbox() && !slices.Contains(t.doing[n], o.Point):
		return false
	case o.Hold == "" && o.Point != point || o.Hold != "" && o.Hold != point:
		return false
	}
	if o.Skip > 0 {
		o.Skip--
		return false
	}
	if o.Point == wire.MidDrain {
		t.held, t.copy = true, n
		t.write(wire.Holding, n)
	} else {
		t.write(wire.Reached, n)
	}
	t.order = wire.Order{}
	return true
}

// draining reports that the drain has begun with the held message in flight.
func (t *trap) draining() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.held {
		t.write(wire.Reached, t.copy)
	}
}

// takes notes that a worker has taken messages, and reports if they are a crowd.
func (t *trap) takes(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lease(n)
	if t.order.Point != wire.Worker500 {
		return
	}
	if t.taken += n; t.taken >= wire.Crowd {
		t.write(wire.Reached, noCopy)
		t.order = wire.Order{}
	}
}

// observe is the engine's Observer: the points up to the commit, and what is
// done in the inbox.
func (t *trap) observe(_ context.Context, e inbox.Event) {
	switch e.Kind {
	case inbox.Claimed:
		t.pass(wire.AfterClaim, wire.CopyOf(e.Message))
	case inbox.Handled:
		t.pass(wire.AfterHandler, wire.CopyOf(e.Message))
	case inbox.Committing:
		t.pass(wire.BeforeCommit, wire.CopyOf(e.Message))
	case inbox.Committed:
		t.pass(wire.AfterCommit, wire.CopyOf(e.Message))
	case inbox.Draining:
		t.draining()
	case inbox.Storing:
		if e.Attempt > 0 {
			t.begins(wire.Stored, wire.CopyOf(e.Message))
		} else {
			t.begins(wire.Behind, wire.CopyOf(e.Message))
		}
	case inbox.Parking:
		t.begins(wire.Parked, wire.CopyOf(e.Message))
	case inbox.Leaving:
		t.begins(wire.MidRelease, wire.CopyOf(e.Message))
	case inbox.Taken:
		t.takes(e.Messages)
	case inbox.Settled:
		t.ends(e.Message)
	}
}

package main

import (
	"context"
	"encoding/json"
	"os"
	"sync"
	"syscall"

	"github.com/semel-go/semel/dedup/calls"
	"github.com/semel-go/semel/inbox"
	"github.com/semel-go/semel/internal/chaos/wire"
)

// trap holds a call at the point it is armed for, or stops the whole process there,
// and reports it.
type trap struct {
	mu      sync.Mutex // guards the fields below; reports are written under it, in the order of what happened
	reports *json.Encoder
	order   wire.Order
}

func (t *trap) arm(o wire.Order) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.order = o
}

// report tells the parent what happens to a message. A parent that does not listen
// any more is gone, and so will we be.
func (t *trap) report(kind wire.Kind, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	_ = t.reports.Encode(wire.Report{Kind: kind, Copy: n})
}

// pass is called when a call reaches a point. Only if the trap stops the process, it
// returns from a trap that springs: when the process goes on.
func (t *trap) pass(point wire.Point) {
	t.mu.Lock()
	o := t.order
	at := o.Point
	if at == wire.Stopped {
		at = o.Hold
	}
	springs := at == point
	if springs && o.Skip > 0 {
		springs = false
		t.order.Skip--
	}
	if springs {
		t.order = wire.Order{}
		_ = t.reports.Encode(wire.Report{Kind: wire.Reached})
	}
	t.mu.Unlock()
	switch {
	case springs && o.Point == wire.Stopped:
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	case springs:
		select {}
	}
}

// trace is what the ledger tells.
func (t *trap) trace(_ context.Context, p calls.Point, _ calls.Call) {
	switch p {
	case calls.BeforeIntent:
		t.pass(wire.BeforeIntent)
	case calls.AfterIntent:
		t.pass(wire.AfterIntent)
	case calls.BeforeResult:
		t.pass(wire.BeforeResultCommit)
	}
}

// observe is the engine's Observer.
func (t *trap) observe(_ context.Context, e inbox.Event) {
	if e.Kind == inbox.Settled {
		t.report(wire.Settled, wire.CopyOf(e.Message))
	}
}

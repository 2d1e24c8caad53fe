package main

import (
	"context"
	"encoding/json"
	"os"
	"runtime"
	"sync"
	"syscall"

	"github.com/semel-go/semel/dedup/calls"
	"github.com/semel-go/semel/inbox"
	"github.com/semel-go/semel/internal/chaos/wire"
)

// trap holds a call at the point it is armed for, and reports it; those behind it are
// held there too, until the process is killed. Or it stops the whole process there.
type trap struct {
	mu      sync.Mutex // guards the fields below; reports are written under it, in the order of what happened
	reports *json.Encoder
	order   wire.Order
	closed  wire.Point // nothing gets past this one any more
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

// pass is called when a call reaches a point. It returns from a trap that springs only
// if that stops the process: when it goes on.
func (t *trap) pass(point wire.Point) {
	switch held, stopped := t.springs(point); {
	case stopped:
		stopHere()
	case held:
		select {}
	}
}

// stopHere stops the process, this thread first: else it could be on its way again
// before the others stand still.
func stopHere() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	_, _, _ = syscall.RawSyscall(syscall.SYS_TGKILL, uintptr(os.Getpid()), uintptr(syscall.Gettid()), uintptr(syscall.SIGSTOP))
}

func (t *trap) springs(point wire.Point) (held, stopped bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	stopped = t.order.Point == wire.Stopped
	at := t.order.Point
	if stopped {
		at = t.order.Hold
	}
	switch {
	case t.closed != "":
		return t.closed == point, false
	case at != point:
		return false, false
	case t.order.Skip > 0:
		t.order.Skip--
		return false, false
	}
	t.order = wire.Order{}
	if !stopped {
		t.closed = point
	}
	_ = t.reports.Encode(wire.Report{Kind: wire.Reached})
	return true, stopped
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

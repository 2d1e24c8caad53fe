package main

import (
	"encoding/json"
	"os"
	"sync"
	"syscall"

	"github.com/semel-go/semel/internal/chaos/wire"
)

// trap stops the process at the point it is armed for, and reports it.
type trap struct {
	reports *json.Encoder

	mu    sync.Mutex // guards order
	order wire.Order
}

func (t *trap) arm(o wire.Order) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.order = o
}

// springs reports whether the trap is armed for a point that a batch reaches, and
// calls it off then.
func (t *trap) springs(point wire.Point) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.order.Point != point {
		return false
	}
	if t.order.Skip > 0 {
		t.order.Skip--
		return false
	}
	t.order = wire.Order{}
	return true
}

// pass is called when a batch reaches a point. It does not return from a trap that
// springs: the whole process stops, until it is killed.
func (t *trap) pass(point wire.Point) {
	if !t.springs(point) {
		return
	}
	_ = t.reports.Encode(wire.Report{Kind: wire.Reached})
	_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
}

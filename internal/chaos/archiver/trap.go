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
	mu      sync.Mutex // guards what follows
	reports *json.Encoder
	order   wire.Order
}

func (t *trap) arm(o wire.Order) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.order = o
}

func (t *trap) armed(point wire.Point) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.order.Point == point
}

// pass is called when a batch reaches a point. It does not return from a trap that
// springs: the whole process stops, other goroutines in the middle of what they do.
func (t *trap) pass(point wire.Point) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.order.Point != point {
		return
	}
	if t.order.Skip > 0 {
		t.order.Skip--
		return
	}
	t.order = wire.Order{}
	_ = t.reports.Encode(wire.Report{Kind: wire.Reached})
	_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
}

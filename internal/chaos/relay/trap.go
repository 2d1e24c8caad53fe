package main

import (
	"encoding/json"
	"os"
	"sync"
	"syscall"

	"github.com/semel-go/semel/internal/chaos/wire"
)

// trap holds a goroutine at the point it is armed for, or stops the whole
// process there, and reports it.
type trap struct {
	mu      sync.Mutex // guards the fields below; reports are written under it, in the order of what happened
	reports *json.Encoder
	order   wire.Order
	flying  int // events that are sent and not noted
}

func (t *trap) arm(o wire.Order) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.order = o
}

// report tells the parent what happened to events. A parent that does not
// listen any more is gone, and so will we be.
func (t *trap) report(kind wire.Kind, ids []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if kind == wire.Sending {
		t.flying += len(ids)
	} else {
		t.flying -= len(ids)
	}
	_ = t.reports.Encode(wire.Report{Kind: kind, IDs: ids})
}

// pass is called when something reaches a point. Only if the trap stops the
// process, it returns from a trap that springs: when the process goes on.
func (t *trap) pass(point wire.Point) {
	t.mu.Lock()
	o := t.order
	at := o.Point
	if at == wire.Stopped {
		at = o.Hold
	}
	springs := at == point && (t.flying > 0 || point == wire.AfterRead)
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

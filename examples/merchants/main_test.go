package main

import (
	"testing"

	"github.com/semel-go/semel/examples/internal/programtest"
	"github.com/semel-go/semel/outbox"
)

var program programtest.Package

func TestMain(m *testing.M) { program.Main(m) }

type testBundle struct {
	programtest.Schema
	approvals

	woken int // how often the relays were
}

// setup makes the service in a schema of its own.
func setup(t *testing.T) *testBundle {
	t.Helper()
	b := &testBundle{Schema: program.Schema(t, tablesSQL)}
	b.approvals = approvals{pool: b.Pool, events: outbox.NewWriter(b.Name), wake: func() { b.woken++ }}
	return b
}

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
	*ledger
}

// setup makes a ledger in a schema of its own.
func setup(t *testing.T) *testBundle {
	t.Helper()
	s := program.Schema(t, tablesSQL)
	return &testBundle{Schema: s, ledger: &ledger{pool: s.Pool, events: outbox.NewWriter(s.Name), wake: func() {}}}
}

// publish puts on the topic what is in the outbox, as relays that make no mistake.
func (b *testBundle) publish(t *testing.T) {
	t.Helper()
	b.Exec(t, `
		INSERT INTO topic_records (kind, aggregate, version, message, place)
		SELECT aggregatetype, aggregateid, version, id, seq FROM semel.outbox;
		UPDATE semel.outbox SET published_at = clock_timestamp()`)
}

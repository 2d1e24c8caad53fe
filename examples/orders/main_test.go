package main

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/examples/internal/edifact"
	"github.com/semel-go/semel/examples/internal/programtest"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
	"github.com/semel-go/semel/outbox"
)

var program programtest.Package

func TestMain(m *testing.M) { program.Main(m) }

// resultLine reads the numbers of the last line.
func resultLine(t *testing.T, output string) map[string]int {
	t.Helper()
	return programtest.Result(t, output, "interchanges", "accepted", "refused", "orders", "erp", "warehouse", "notified", "lost", "doubled")
}

type testBundle struct {
	programtest.Schema
	in *inbox.Inbox
}

// setup makes an intake in a schema of its own.
func setup(t *testing.T, lenient bool) *testBundle {
	t.Helper()
	b := &testBundle{Schema: program.Schema(t, tablesSQL)}
	i := intake{parser: edifact.Parser{Lenient: lenient, MaxBytes: maxFile}, events: outbox.NewWriter(b.Name)}
	var err error
	b.in, err = inbox.New(b.Pool, intakeName, i.receive, inbox.Config{Schema: b.Name, ID: interchangeID, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	return b
}

// take has the intake take an interchange.
func (b *testBundle) take(t *testing.T, data string) handler.Outcome {
	t.Helper()
	msg := &handler.Message{Payload: []byte(data)}
	msg.CorrelationID, _ = interchangeID(msg)
	outcome, err := b.in.Process(t.Context(), msg)
	require.NoError(t, err)
	return outcome
}

// errors are those of the dead letters, in their order.
func (b *testBundle) errors(t *testing.T) []string {
	t.Helper()
	return b.Texts(t, `SELECT reason || ': ' || errors[1] FROM semel.dead_letters ORDER BY id`)
}

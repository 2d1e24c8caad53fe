package main

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/examples/internal/example"
	"github.com/semel-go/semel/examples/internal/programtest"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
)

var program programtest.Package

func TestMain(m *testing.M) { program.Main(m) }

type testBundle struct{ programtest.Schema }

// setup makes the services' tables in a schema of their own.
func setup(t *testing.T) *testBundle {
	t.Helper()
	return &testBundle{program.Schema(t, tablesSQL)}
}

// consumer returns the inbox of one of the topic's consumers.
func (b *testBundle) consumer(t *testing.T, name string, h handler.Func) *inbox.Inbox {
	t.Helper()
	in, err := inbox.New(b.Pool, name, h, inbox.Config{Schema: b.Name, Workers: 1, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	return in
}

func (b *testBundle) config(accounts ...account) partConfig {
	return partConfig{example.Services{Name: "test", Schema: b.Name}, accounts}
}

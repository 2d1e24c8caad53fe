package main

import (
	"context"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/examples/internal/database"
	"github.com/semel-go/semel/examples/internal/programtest"
)

// TestMain lets the test binary be the supervisor of its embedded PostgreSQL.
func TestMain(m *testing.M) {
	if database.Supervise() {
		return
	}
	status := m.Run()
	builds.Remove()
	os.Exit(status)
}

// builds is where the programs are.
var builds programtest.Builds

// resultLine reads the numbers of the last line.
func resultLine(t *testing.T, output string) map[string]int {
	t.Helper()
	return programtest.Result(t, output, "produced", "distinct", "handled", "duplicates", "dead", "lost", "doubled",
		"forged_refused", "superseded", "shipped", "invoiced")
}

// withDatabase opens a database for a test of its own, and a schema in it.
func withDatabase(t *testing.T) *database.Server {
	t.Helper()
	server, err := database.Open(context.WithoutCancel(t.Context()), func(text string) { t.Log(text) })
	require.NoError(t, err)
	t.Cleanup(server.Close)
	return server
}

package main

import (
	"testing"

	"github.com/semel-go/semel/examples/internal/programtest"
)

var program programtest.Package

func TestMain(m *testing.M) { program.Main(m) }

// resultLine reads the numbers of the last line.
func resultLine(t *testing.T, output string) map[string]int {
	t.Helper()
	return programtest.Result(t, output, "produced", "distinct", "handled", "duplicates", "dead", "lost", "doubled",
		"forged_refused", "superseded", "shipped", "invoiced")
}

//go:build linux

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/examples/internal/programtest"
)

func resultLine(t *testing.T, output string) map[string]int {
	t.Helper()
	return programtest.Result(t, output, "orders", "invoices", "missing", "lost", "doubled", "dead", "attempts_in_outage")
}

var atProvider = regexp.MustCompile(`idempotency keys: (\d+) calls and (\d+) questions, (\d+) effects`)

func TestEInvoice(t *testing.T) {
	t.Parallel()
	p := programtest.Start(t, program.Build(t, ""))

	output, status := p.End(t)

	require.Equal(t, 0, status)
	require.Equal(t, map[string]int{
		"orders": 240, "invoices": 228, "missing": 0, "lost": 0, "doubled": 0, "dead": 12, "attempts_in_outage": 0,
	}, resultLine(t, output))
	for _, line := range []string{
		`sender-1 killed with SIGKILL`,
		`sender-2 killed with SIGKILL`,
		`the providers are down for maintenance now, for 5s`,
		`sender-\d finds provider "query" away: its breaker opens`,
		`sender-\d finds provider "keys" away: its breaker opens`,
		`the maintenance is over; it has cost 0 attempts`,
		`\n +10  were cancelled`,
		`\n +\d+  INV-ord-\d+ +permanent +\d  +ord-\d+ +billing +einvoice-sender-query +send document "INV-ord-\d+" to query: it refuses the "tax_number"`,
		`einvoice-sender-keys +send document "INV-ord-\d+" to keys: it refuses the "tax_number"`,
	} {
		require.Regexp(t, line, output)
	}
	providers := atProvider.FindAllStringSubmatch(output, -1)
	require.Len(t, providers, 2)
	effects := 0
	for _, found := range providers {
		calls, made := number(t, found[1]), number(t, found[3])
		require.Greater(t, calls, made)
		effects += made
	}
	require.Positive(t, number(t, providers[0][2]), "without keys one has to ask")
	require.Equal(t, 238, effects, "228 invoices and 10 credit notes")
	p.LeavesNothing(t)
}

func number(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	require.NoError(t, err)
	return n
}

// RESULT must tell when the promise is broken: here each attempt of a call has a key of
// its own, and the provider takes it for another call.
func TestEInvoice_TellsDoubles(t *testing.T) {
	t.Parallel()
	p := programtest.Start(t, program.Build(t, "plant_new_key_per_attempt"), "-variant", "keys", "-n", "120", "-maintenance", "2s")

	output, status := p.End(t)

	require.Equal(t, 1, status)
	n := resultLine(t, output)
	require.Positive(t, n["doubled"])
	require.Zero(t, n["lost"])
	require.Zero(t, n["missing"])
}

// Orders of somebody's own; -keep leaves the tables, and says how to look at them.
func TestEInvoice_InputAndKeep(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "orders.jsonl")
	require.NoError(t, os.WriteFile(file, []byte(`{"id":"a1","customer":"Metz","tax_number":"no number","amount":100,"card":"declined"}
{"id":"a2","customer":"Lyon","tax_number":"FR123","amount":100,"card":"declined"}
{"id":"a2","customer":"Lyon","tax_number":"FR123","amount":100,"card":"declined"}
{"id":"a3","customer":"Jena","tax_number":"DE123","amount":5}`), 0o600))
	p := programtest.Start(t, program.Build(t, ""), "-input", file, "-maintenance", "2s", "-keep")

	output := p.Until(t, "RESULT")

	require.Equal(t, map[string]int{
		"orders": 3, "invoices": 2, "missing": 0, "lost": 0, "doubled": 0, "dead": 1, "attempts_in_outage": 0,
	}, resultLine(t, output))
	require.Regexp(t, `\n +1  were cancelled`, output, "the credit note of a1 waits behind its invoice, which nobody has")
	require.Contains(t, output, "semel dlq list -schema semel_einvoice_")
	require.Contains(t, output, "semel calls list -state all -schema semel_einvoice_")
	require.Contains(t, output, "export DATABASE_URL='postgres://")

	require.NoError(t, p.Cmd.Process.Signal(os.Interrupt))

	_, status := p.End(t)
	require.Equal(t, 0, status)
	p.LeavesNothing(t)
}

func TestEInvoice_Refuses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		args   []string
		status int
		says   string
	}{
		{name: "MissingFile", args: []string{"-input", "/nowhere/orders.jsonl"}, status: 1, says: "open /nowhere/orders.jsonl: no such file"},
		{name: "NoOrders", args: []string{"-n", "0"}, status: 2, says: "-n is 0, it must be between"},
		{name: "Variant", args: []string{"-variant", "fax"}, status: 2, says: `-variant is "fax", it is one of both, query, keys`},
		{name: "NoMaintenance", args: []string{"-maintenance", "0s"}, status: 2, says: "-maintenance is 0s, it must be between 2s and 10m"},
		{name: "UnknownFlag", args: []string{"-nonsense"}, status: 2, says: "-nonsense"},
		{name: "Argument", args: []string{"orders.jsonl"}, status: 2, says: `unknown argument "orders.jsonl"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := programtest.Start(t, program.Build(t, ""), tt.args...)

			_, status := p.End(t)

			require.Equal(t, tt.status, status)
			require.Contains(t, p.ErrOut.String(), tt.says)
		})
	}
}

// Whatever ends the program, no server, no sender and no provider outlives it.
func TestEInvoice_LeavesNothing(t *testing.T) {
	t.Parallel()
	for name, signal := range map[string]syscall.Signal{"Killed": syscall.SIGKILL, "CtrlC": syscall.SIGINT} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := programtest.Start(t, program.Build(t, ""))
			folder := regexp.MustCompile(`ledger files are in (\S+)`).FindStringSubmatch(p.Until(t, "killed with SIGKILL"))
			require.Len(t, folder, 2)
			t.Cleanup(func() { _ = os.RemoveAll(folder[1]) })
			require.DirExists(t, folder[1])
			require.GreaterOrEqual(t, len(p.Processes(t)), 8, "the program, a supervisor, a server, a relay, services, a sender and two providers")

			require.NoError(t, p.Cmd.Process.Signal(signal))

			_, status := p.End(t)
			require.NotEqual(t, 0, status)
			if signal != syscall.SIGKILL {
				require.Contains(t, p.ErrOut.String(), "stopped before the end")
				require.NoDirExists(t, folder[1])
			}
			p.LeavesNothing(t)
		})
	}
}

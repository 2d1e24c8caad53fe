//go:build linux

package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/examples/internal/programtest"
)

func TestPayments(t *testing.T) {
	t.Parallel()
	p := programtest.Start(t, program.Build(t, ""))

	output, status := p.End(t)

	require.Equal(t, 0, status)
	n := resultLine(t, output)
	// Which ones are superseded, and with them which orders are shipped, is chance.
	require.Equal(t, 1590, n["handled"]+n["superseded"])
	require.Greater(t, n["superseded"], 50)
	require.Equal(t, n["shipped"], n["invoiced"])
	require.InDelta(t, 1080, n["shipped"], 120)
	for key, want := range map[string]int{
		"produced": 4915, "distinct": 1639, "duplicates": 3276, "dead": 49, "lost": 0, "doubled": 0, "forged_refused": 1,
	} {
		require.Equal(t, want, n[key], key)
	}
	require.Contains(t, output, "killed with SIGKILL")
	for _, reason := range []string{"1  bad_id", "12  mismatch", "24  permanent", "12  undecodable"} {
		require.Contains(t, output, reason)
	}
	p.LeavesNothing(t)
}

// What is older must not run: here the version guard lets it, and orders that were
// refunded before their payment came are shipped.
func TestPayments_TellsWhatTheGuardIsFor(t *testing.T) {
	t.Parallel()
	p := programtest.Start(t, program.Build(t, "plant_guard_lets_older_run"), "-n", "100")

	output, status := p.End(t)

	require.Equal(t, 0, status, "all is handled once")
	n := resultLine(t, output)
	require.Zero(t, n["superseded"])
	require.Equal(t, 100, n["shipped"])
}

// RESULT must tell when the promise is broken: here the engine takes every copy for
// the first. Those that come to the killed consumer again are shipped again, unless it
// had acknowledged all but what it had in hand.
func TestPayments_TellsDoubles(t *testing.T) {
	t.Parallel()
	for range 3 {
		p := programtest.Start(t, program.Build(t, "plant_no_claim"))

		output, status := p.End(t)

		n := resultLine(t, output)
		if n["doubled"] == 0 {
			continue
		}
		require.Positive(t, n["doubled"])
		require.Greater(t, n["shipped"]+n["invoiced"], 2*min(n["shipped"], n["invoiced"]))
		require.Equal(t, 1, status)
		return
	}
	require.Fail(t, "nothing was doubled")
}

func TestPayments_Input(t *testing.T) {
	t.Parallel()
	lines := []string{
		"\ufeff" + `{"id":"evt_1","type":"payment_intent.succeeded","body":{"data":{"object":{"id":"pi_1","amount":100}}}}` + "\r",
		`{"id":"evt_1","type":"payment_intent.succeeded","body":{"data":{"object":{"id":"pi_1","amount":100}}}}`, // a copy
		`{"id":"evt_2", "type":`, // malformed
		``,                       // nothing
		`[1, 2]`,                 // no object
		`{"id":"evt_3","type":"payout.paid","body":"a text"}`,                                                  // any type
		`{"type":"payout.paid","body":1}`,                                                                      // no id
		`{"id":"evt_4","body":1}`,                                                                              // no type
		`{"id":"evt_5","type":"big","body":"` + strings.Repeat("x", 10<<20) + `"}`,                             // 10 MB
		`{"id":"evt_1","type":"payment_intent.succeeded","body":{"data":{"object":{"id":"pi_1","amount":7}}}}`, // a mismatch
		strings.Repeat("x", maxLine+1),                                                                         // too long to travel
		`{"id":"evt_6","type":"charge.refunded","body":{"amount_refunded":5}}`,                                 // bare, and no line end
	}
	file := filepath.Join(t.TempDir(), "orders.jsonl")
	require.NoError(t, os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o600))
	p := programtest.Start(t, program.Build(t, ""), "-input", file)

	output, status := p.End(t)

	require.Equal(t, 0, status)
	require.Equal(t, map[string]int{
		"produced": 11, "distinct": 10, "handled": 4, "duplicates": 1, "dead": 6, "lost": 0, "doubled": 0,
		"forged_refused": 1, "superseded": 0, "shipped": 1, "invoiced": 1,
	}, resultLine(t, output))
	require.Regexp(t, `3  undecodable +for example stripe:orders.jsonl line \d+ +payload cannot be decoded: orders.jsonl line \d+: it (is|has)`, output)
	require.Regexp(t, `1  bad_id +for example stripe `, output)
	require.Regexp(t, `1  permanent +for example stripe:evt_4 +the event says no type`, output)
	require.Contains(t, output, "1  empty lines, passed over")
}

func TestPayments_Refuses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		args   []string
		status int
		says   string
	}{
		{name: "MissingFile", args: []string{"-input", "/nowhere/orders.jsonl"}, status: 1, says: "open /nowhere/orders.jsonl: no such file"},
		{name: "Folder", args: []string{"-input", "/"}, status: 1, says: "/ is a folder"},
		{name: "NoOrders", args: []string{"-n", "0"}, status: 2, says: "-n is 0, it must be between"},
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

// Whatever ends the program, no server and no process of the service outlives it.
func TestPayments_LeavesNothing(t *testing.T) {
	t.Parallel()
	for name, signal := range map[string]syscall.Signal{"Killed": syscall.SIGKILL, "CtrlC": syscall.SIGINT, "HangUp": syscall.SIGHUP} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := programtest.Start(t, program.Build(t, ""))
			p.Until(t, "killed with SIGKILL") // all kinds of processes run
			require.GreaterOrEqual(t, len(p.Processes(t)), 6, "the program, a supervisor, a server, the service and two consumers")

			require.NoError(t, p.Cmd.Process.Signal(signal))

			_, status := p.End(t)
			require.NotEqual(t, 0, status)
			if signal != syscall.SIGKILL {
				require.Contains(t, p.ErrOut.String(), "stopped before the end")
			}
			p.LeavesNothing(t)
		})
	}
}

// -keep leaves the tables, and says how to look at them.
func TestPayments_Keep(t *testing.T) {
	t.Parallel()
	p := programtest.Start(t, program.Build(t, ""), "-keep", "-n", "20")
	output := p.Until(t, "RESULT")
	require.Contains(t, output, "semel dlq list -schema semel_payments_")
	require.Contains(t, output, "export DATABASE_URL='postgres://")

	require.NoError(t, p.Cmd.Process.Signal(os.Interrupt))

	_, status := p.End(t)
	require.Equal(t, 0, status)
	p.LeavesNothing(t)
}

//go:build linux

package main

import (
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/examples/internal/programtest"
)

// The rate that a machine reaches is its own; that nothing is lost, doubled or out of
// order is not.
func TestLedger(t *testing.T) {
	t.Parallel()
	p := programtest.Start(t, program.Build(t, ""), "-rate", "600", "-for", "5s", "-relays", "2", "-kill")

	output, status := p.End(t)

	require.Equal(t, 0, status)
	n := programtest.Result(t, output, "offered", "achieved", "send_success", "send_fail", "lag_p99_ms", "lost", "doubled")
	require.Equal(t, 600, n["offered"])
	require.Positive(t, n["achieved"])
	require.Positive(t, n["send_success"])
	require.LessOrEqual(t, n["send_success"], 3000)
	require.Positive(t, n["lag_p99_ms"])
	require.Zero(t, n["lost"])
	require.Zero(t, n["doubled"])
	for _, line := range []string{
		`s  init +\d+  send_success +\d+  send_fail \d+  lag +\d+ ms  rate +\d+/s`,
		`relay-1 killed with SIGKILL`,
		`\n +1  relays killed`,
		`\n +0  postings and accounts do not balance`,
		`\n +0  out of the order`,
		`\n +[1-9]\d*  all that ran on the machine`,
	} {
		require.Regexp(t, line, output)
	}
	p.LeavesNothing(t)
}

// The example must tell when the promise is broken: here the relays take for
// published what they have only begun to send, and so send the next as well.
func TestLedger_TellsDisorder(t *testing.T) {
	t.Parallel()
	p := programtest.Start(t, program.Build(t, "plant_mark_before_confirm"), "-rate", "3000", "-for", "5s", "-relays", "2", "-kill")

	output, status := p.End(t)

	require.Equal(t, 1, status)
	require.Regexp(t, `\n +[1-9]\d*  out of the order`, output)
	require.Contains(t, p.ErrOut.String(), "are out of the order of their account or order")
}

func TestLedger_Refuses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		args []string
		says string
	}{
		{name: "NoRate", args: []string{"-rate", "0"}, says: "-rate is 0, it must be between 30 and 100000"},
		{name: "NoTime", args: []string{"-for", "0s"}, says: "-for is 0s, it must be between 1s and 1h0m0s"},
		{name: "NoRelays", args: []string{"-relays", "0"}, says: "-relays is 0, it must be between 1 and 16"},
		{name: "NoBatch", args: []string{"-batch", "0"}, says: "-batch is 0, it must be between 1 and 1000"},
		{name: "UnknownFlag", args: []string{"-nonsense"}, says: "-nonsense"},
		{name: "Argument", args: []string{"ledger.csv"}, says: `unknown argument "ledger.csv"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := programtest.Start(t, program.Build(t, ""), tt.args...)

			_, status := p.End(t)

			require.Equal(t, 2, status)
			require.Contains(t, p.ErrOut.String(), tt.says)
		})
	}
}

// Whatever ends the program, no server, no relay and no writer outlives it.
func TestLedger_LeavesNothing(t *testing.T) {
	t.Parallel()
	for name, signal := range map[string]syscall.Signal{"Killed": syscall.SIGKILL, "CtrlC": syscall.SIGINT} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := programtest.Start(t, program.Build(t, ""), "-rate", "300", "-relays", "2")
			p.Until(t, "send_success")
			require.GreaterOrEqual(t, len(p.Processes(t)), 6, "the program, a supervisor, a server, a writer and two relays")

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

// Times of a process are those that it has itself.
func TestReadProcess(t *testing.T) {
	t.Parallel()
	computed := func() time.Duration {
		var spent syscall.Rusage
		require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &spent))
		return time.Duration(spent.Utime.Nano() + spent.Stime.Nano())
	}
	for computed() < 20*tick {
	}

	before := computed()
	p, ok := readProcess(os.Getpid())
	after := computed()

	require.True(t, ok)
	require.Equal(t, os.Getppid(), p.parent)
	require.GreaterOrEqual(t, p.own, before-2*tick)
	require.LessOrEqual(t, p.own, after+2*tick)
	require.GreaterOrEqual(t, computedBy(os.Getppid()), p.own)
	require.GreaterOrEqual(t, computedByAll(), p.own)
	_, ok = readProcess(-1)
	require.False(t, ok)
}

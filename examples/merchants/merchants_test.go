//go:build linux

package main

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/examples/internal/programtest"
)

func resultLine(t *testing.T, output string) map[string]int {
	t.Helper()
	return programtest.Result(t, output, "approvals", "p99_ms", "broker_down_s", "published", "configs", "indexed", "lost", "doubled")
}

func TestMerchants(t *testing.T) {
	t.Parallel()
	p := programtest.Start(t, program.Build(t, ""), "-down", "4s")

	output, status := p.End(t)

	require.Equal(t, 0, status)
	n := resultLine(t, output)
	// An endpoint that waited for the broker would take seconds. 300 ms are for
	// a machine that has time.
	require.Less(t, n["p99_ms"], 2000)
	require.GreaterOrEqual(t, n["broker_down_s"], 4)
	delete(n, "p99_ms")
	delete(n, "broker_down_s")
	require.Equal(t, map[string]int{ // of 240 merchants, one in ten has another's account
		"approvals": 216, "published": 216, "configs": 216, "indexed": 216, "lost": 0, "doubled": 0,
	}, n)
	for _, line := range []string{
		`\n +216  approved\n`,
		`\n +48  approved before`, // one in five clicks twice
		`\n +24  refused`,
		`\n +2  relays killed`,
		`\n +0  attempts were spent`,
		`\n +[1-9]\d*  further copies of them`, // the relay was killed before it could know
		`\n +216  configurations, after 2[2-9]\d calls`,
		`\n +0  dead letters`,
	} {
		require.Regexp(t, line, output)
	}
	p.LeavesNothing(t)
}

// RESULT must tell when the promise is broken: here the engine takes every copy
// for the first. The configurations stay single, for the API knows the key.
func TestMerchants_TellsDoubles(t *testing.T) {
	t.Parallel()
	p := programtest.Start(t, program.Build(t, "plant_no_claim"), "-down", "1s")

	output, status := p.End(t)

	require.Equal(t, 1, status)
	n := resultLine(t, output)
	require.Positive(t, n["doubled"])
	require.Zero(t, n["lost"])
	require.Greater(t, n["indexed"], n["approvals"])
	require.Equal(t, n["approvals"], n["configs"])
}

func TestMerchants_Refuses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		args []string
		says string
	}{
		{name: "NoOutage", args: []string{"-down", "0s"}, says: "-down is 0s, it must be between 1s and 10m"},
		{name: "NoRate", args: []string{"-rate", "0"}, says: "-rate is 0, it must be between 1 and 200"},
		{name: "UnknownFlag", args: []string{"-nonsense"}, says: "-nonsense"},
		{name: "Argument", args: []string{"merchants.csv"}, says: `unknown argument "merchants.csv"`},
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

// Whatever ends the program, no server, no relay and no consumer outlives it.
func TestMerchants_LeavesNothing(t *testing.T) {
	t.Parallel()
	for name, signal := range map[string]syscall.Signal{"Killed": syscall.SIGKILL, "CtrlC": syscall.SIGINT} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := programtest.Start(t, program.Build(t, ""))
			p.Until(t, "the broker is away now")
			require.GreaterOrEqual(t, len(p.Processes(t)), 7, "the program, a supervisor, a server, two relays and two consumers")

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

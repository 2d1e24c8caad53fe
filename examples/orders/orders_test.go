//go:build linux

package main

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/examples/internal/programtest"
)

func TestOrders(t *testing.T) {
	t.Parallel()
	p := programtest.Start(t, program.Build(t, ""))

	output, status := p.End(t)

	require.Equal(t, 0, status)
	require.Equal(t, map[string]int{
		"interchanges": 324, "accepted": 301, "refused": 23, "orders": 901, "erp": 901, "warehouse": 901, "notified": 901, "lost": 0, "doubled": 0,
	}, resultLine(t, output))
	require.Contains(t, output, "intake killed with SIGKILL in the middle of")
	require.Contains(t, output, "segment 14 (UNT), element 1, byte 295: it says 21 segments, there are 13")
	require.Contains(t, output, `"1020A" is no number`)
	p.LeavesNothing(t)
}

// With a wrong count it is the lenient switch that decides. Files of somebody's own.
func TestOrders_Lenient(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for _, name := range []string{"good.edi", "wrong-count.edi"} {
		data, err := written.ReadFile("interchanges/" + name)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), data, 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(folder, "copy-of-"+name), data, 0o600))
	}
	for name, tt := range map[string]struct {
		args []string
		says string
		want map[string]int
	}{
		"Strict": {
			args: []string{"-input", folder}, says: "undecodable  payload cannot be decoded: segment 14 (UNT)",
			want: map[string]int{"interchanges": 2, "accepted": 1, "refused": 1, "orders": 1, "erp": 1, "warehouse": 1, "notified": 1, "lost": 0, "doubled": 0},
		},
		"Lenient": {
			args: []string{"-input", folder, "-lenient"}, says: "Accepted with a warning: 4012345000009/4399902000005/1000002: segment 14 (UNT)",
			want: map[string]int{"interchanges": 2, "accepted": 2, "refused": 0, "orders": 2, "erp": 2, "warehouse": 2, "notified": 2, "lost": 0, "doubled": 0},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := programtest.Start(t, program.Build(t, ""), tt.args...)

			output, status := p.End(t)

			require.Equal(t, 0, status)
			require.Equal(t, tt.want, resultLine(t, output))
			require.Contains(t, output, tt.says)
		})
	}
}

// RESULT must tell when the promise is broken: here the engine takes every copy for
// the first, and a good interchange that comes again is refused.
func TestOrders_TellsDoubles(t *testing.T) {
	t.Parallel()
	p := programtest.Start(t, program.Build(t, "plant_no_claim"), "-n", "60")

	output, status := p.End(t)

	require.Equal(t, 1, status)
	require.Positive(t, resultLine(t, output)["doubled"])
}

func TestOrders_Refuses(t *testing.T) {
	t.Parallel()
	empty := t.TempDir()
	tests := []struct {
		name   string
		args   []string
		status int
		says   string
	}{
		{name: "MissingFile", args: []string{"-input", "/nowhere/orders.edi"}, status: 1, says: "stat /nowhere/orders.edi: no such file"},
		{name: "EmptyFolder", args: []string{"-input", empty}, status: 1, says: "there is no file in " + empty},
		{name: "NoInterchanges", args: []string{"-n", "0"}, status: 2, says: "-n is 0, it must be between 1 and 100000"},
		{name: "UnknownFlag", args: []string{"-nonsense"}, status: 2, says: "-nonsense"},
		{name: "Argument", args: []string{"orders.edi"}, status: 2, says: `unknown argument "orders.edi"`},
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

// Whatever ends the program, no server and no process of the services outlives it.
func TestOrders_LeavesNothing(t *testing.T) {
	t.Parallel()
	for name, signal := range map[string]syscall.Signal{"Killed": syscall.SIGKILL, "CtrlC": syscall.SIGINT} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := programtest.Start(t, program.Build(t, ""))
			p.Until(t, "killed with SIGKILL") // all kinds of processes run

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

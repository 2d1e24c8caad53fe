// Package programtest tests an example as its user runs it: the built program,
// with nothing but what is embedded in it.
package programtest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// patience is how long a program may run.
const patience = 3 * time.Minute

// Program is a program that runs.
type Program struct {
	Cmd    *exec.Cmd
	ErrOut bytes.Buffer

	out  *bufio.Scanner
	mark string // in the environment of all processes it starts
}

// Start starts a program without the variables that name services. It is
// killed when it takes too long.
func Start(t *testing.T, binary string, args ...string) *Program {
	t.Helper()
	p := &Program{Cmd: exec.Command(binary, args...), mark: fmt.Sprintf("SEMEL_TEST_RUN=%s-%d", t.Name(), time.Now().UnixNano())} //nolint:gosec // the test's
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "DATABASE_URL=") && !strings.HasPrefix(kv, "KAFKA_BROKERS=") {
			p.Cmd.Env = append(p.Cmd.Env, kv)
		}
	}
	p.Cmd.Env = append(p.Cmd.Env, p.mark)
	p.Cmd.Stderr = &p.ErrOut
	out, err := p.Cmd.StdoutPipe()
	require.NoError(t, err)
	p.out = bufio.NewScanner(out)
	require.NoError(t, p.Cmd.Start())
	timer := time.AfterFunc(patience, func() { _ = p.Cmd.Process.Kill() })
	t.Cleanup(func() { timer.Stop() })
	return p
}

// Until reads the output up to a line that contains text, and returns all of it.
func (p *Program) Until(t *testing.T, text string) string {
	t.Helper()
	var read strings.Builder
	for p.out.Scan() {
		read.WriteString(p.out.Text() + "\n")
		if strings.Contains(p.out.Text(), text) {
			return read.String()
		}
	}
	require.Failf(t, "the output ended", "without %q:\n%s\n%s", text, read.String(), p.ErrOut.String())
	return ""
}

// End reads the rest of the output and returns it with the exit status.
func (p *Program) End(t *testing.T) (output string, status int) {
	t.Helper()
	var read strings.Builder
	for p.out.Scan() {
		read.WriteString(p.out.Text() + "\n")
	}
	err := p.Cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	t.Logf("%s%s", read.String(), p.ErrOut.String())
	return read.String(), p.Cmd.ProcessState.ExitCode()
}

// LeavesNothing waits until no process that the program started runs.
func (p *Program) LeavesNothing(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool { return len(p.Processes(t)) == 0 }, time.Minute, 50*time.Millisecond,
		"still running: %v", p.Processes(t))
}

// Processes are those that the program started, and it itself.
func (p *Program) Processes(t *testing.T) (running []string) {
	t.Helper()
	environments, err := filepath.Glob("/proc/[0-9]*/environ")
	require.NoError(t, err)
	for _, path := range environments {
		env, err := os.ReadFile(path)                                 //nolint:gosec // in /proc
		if err == nil && bytes.Contains(env, []byte(p.mark+"\x00")) { // those of other users cannot be read
			name, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline")) //nolint:gosec // in /proc
			running = append(running, filepath.Dir(path)+" "+string(bytes.ReplaceAll(name, []byte{0}, []byte(" "))))
		}
	}
	return running
}

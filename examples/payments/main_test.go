package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/examples/internal/database"
)

// TestMain lets the test binary be the supervisor of its embedded PostgreSQL.
func TestMain(m *testing.M) {
	if database.Supervise() {
		return
	}
	status := m.Run()
	_ = os.RemoveAll(builds.path)
	os.Exit(status)
}

// program is the built program as a user runs it: with nothing but an embedded
// PostgreSQL and a Kafka in its process.
type program struct {
	cmd *exec.Cmd
	out *bufio.Scanner

	errOut bytes.Buffer
	mark   string // in the environment of all processes it starts
}

// build builds the program, once for each set of tags.
func build(t *testing.T, tags string) string {
	t.Helper()
	builds.Lock()
	defer builds.Unlock()
	path := filepath.Join(builds.dir(t), "payments-"+tags)
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		out, err := exec.Command("go", "build", "-tags", tags, "-o", path, ".").CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	return path
}

func start(t *testing.T, binary string, args ...string) *program {
	t.Helper()
	p := &program{cmd: exec.Command(binary, args...), mark: fmt.Sprintf("SEMEL_TEST_RUN=%s-%d", t.Name(), time.Now().UnixNano())}
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "DATABASE_URL=") && !strings.HasPrefix(kv, "KAFKA_BROKERS=") {
			p.cmd.Env = append(p.cmd.Env, kv)
		}
	}
	p.cmd.Env = append(p.cmd.Env, p.mark)
	p.cmd.Stderr = &p.errOut
	out, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	p.out = bufio.NewScanner(out)
	require.NoError(t, p.cmd.Start())
	timer := time.AfterFunc(time.Minute, func() { _ = p.cmd.Process.Kill() })
	t.Cleanup(func() { timer.Stop() })
	return p
}

// until reads the output up to a line that contains text, and returns all of it.
func (p *program) until(t *testing.T, text string) string {
	t.Helper()
	var read strings.Builder
	for p.out.Scan() {
		read.WriteString(p.out.Text() + "\n")
		if strings.Contains(p.out.Text(), text) {
			return read.String()
		}
	}
	require.Failf(t, "the output ended", "without %q:\n%s\n%s", text, read.String(), p.errOut.String())
	return ""
}

// end reads the rest of the output and returns it with the exit status.
func (p *program) end(t *testing.T) (output string, status int) {
	t.Helper()
	var read strings.Builder
	for p.out.Scan() {
		read.WriteString(p.out.Text() + "\n")
	}
	err := p.cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	t.Logf("%s%s", read.String(), p.errOut.String())
	return read.String(), p.cmd.ProcessState.ExitCode()
}

// leavesNothing waits until no process that the program started runs.
func (p *program) leavesNothing(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool { return len(p.processes(t)) == 0 }, 10*time.Second, 50*time.Millisecond,
		"still running: %v", p.processes(t))
}

func (p *program) processes(t *testing.T) (running []string) {
	t.Helper()
	environments, err := filepath.Glob("/proc/[0-9]*/environ")
	require.NoError(t, err)
	for _, path := range environments {
		env, err := os.ReadFile(path)
		if err == nil && bytes.Contains(env, []byte(p.mark+"\x00")) { // those of other users cannot be read
			name, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
			running = append(running, filepath.Dir(path)+" "+string(bytes.ReplaceAll(name, []byte{0}, []byte(" "))))
		}
	}
	return running
}

// resultLine reads the numbers of the last line.
func resultLine(t *testing.T, output string) map[string]int {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(output), "\n")
	last := lines[len(lines)-1]
	require.Regexp(t, `^RESULT produced=\d+ distinct=\d+ handled=\d+ duplicates=\d+ dead=\d+ lost=-?\d+ doubled=\d+$`, last)
	numbers := map[string]int{}
	for _, pair := range regexp.MustCompile(`(\w+)=(-?\d+)`).FindAllStringSubmatch(last, -1) {
		n, err := strconv.Atoi(pair[2])
		require.NoError(t, err)
		numbers[pair[1]] = n
	}
	return numbers
}

// builds is where the programs are.
var builds binaries

type binaries struct {
	sync.Mutex
	path string
}

// dir makes the folder with the first use. It must outlive the test that makes it.
func (b *binaries) dir(t *testing.T) string {
	t.Helper()
	if b.path == "" {
		path, err := os.MkdirTemp("", "payments-test-")
		require.NoError(t, err)
		b.path = path
	}
	return b.path
}

// withDatabase opens a database for a test of its own, and a schema in it.
func withDatabase(t *testing.T) *database.Server {
	t.Helper()
	server, err := database.Open(context.WithoutCancel(t.Context()), func(text string) { t.Log(text) })
	require.NoError(t, err)
	t.Cleanup(server.Close)
	return server
}

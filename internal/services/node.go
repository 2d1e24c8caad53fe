package services

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// nodeStart is how long a node may take to start, on a busy machine.
const nodeStart = 2 * time.Minute

// RabbitMQNode is a RabbitMQ of a test's own, to be killed and started again
// with what it has on its disk. It is for one goroutine.
type RabbitMQNode struct {
	URL        string
	Management string // the URL of its management API, of a managed one

	managed bool
	dir     string
	process *exec.Cmd
	exited  chan struct{} // closed when process has
}

// NewRabbitMQNode starts a node. It ends with its test. Where RabbitMQ is not
// installed the test is skipped, or fails (see [Missing]).
func NewRabbitMQNode(tb testing.TB) *RabbitMQNode {
	tb.Helper()
	return newRabbitMQNode(tb, &RabbitMQNode{})
}

// NewManagedRabbitMQNode starts a node with the management API, which the shared
// one has not.
func NewManagedRabbitMQNode(tb testing.TB) *RabbitMQNode {
	tb.Helper()
	return newRabbitMQNode(tb, &RabbitMQNode{managed: true})
}

func newRabbitMQNode(tb testing.TB, n *RabbitMQNode) *RabbitMQNode {
	tb.Helper()
	if _, err := os.Stat(rabbitMQServer); err != nil || runtime.GOOS != "linux" {
		Missing(tb, "a RabbitMQ that this test may kill needs "+rabbitMQServer+": run 'make services-up' on Linux without "+RabbitMQVariable)
	}
	n.dir = tb.TempDir()
	tb.Cleanup(func() {
		n.Kill(tb)
		_, _ = nodeScript(tb, "end", n.dir)
	})
	n.Start(tb)
	return n
}

// rabbitMQServer is where the distribution's package has it.
const rabbitMQServer = "/usr/lib/rabbitmq/bin/rabbitmq-server"

// Start starts the node and waits until it answers. Its URL stays the same.
func (n *RabbitMQNode) Start(tb testing.TB) {
	tb.Helper()
	out, err := os.OpenFile(filepath.Join(n.dir, "out"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		tb.Fatalf("start a RabbitMQ: %v", err)
	}
	defer func() { _ = out.Close() }()
	args := []string{"run", n.dir, strconv.Itoa(os.Getpid())}
	if n.managed {
		args = append(args, "management")
	}
	cmd := exec.Command(nodeScriptPath(tb), args...) //nolint:gosec // our own script
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		tb.Fatalf("start a RabbitMQ: %v", err)
	}
	exited := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(exited)
	}()
	n.process, n.exited = cmd, exited
	deadline := time.After(nodeStart)
	for !n.answers() {
		select {
		case <-exited:
			tb.Fatalf("start a RabbitMQ: it ended:\n%s", n.said())
		case <-deadline:
			tb.Fatalf("start a RabbitMQ: no answer within %s:\n%s", nodeStart, n.said())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Remember has the node write down what was declared on it. It does so by itself
// only after a moment, and a node killed before that comes back without the
// queue, confirmed messages and all.
func (n *RabbitMQNode) Remember(tb testing.TB) {
	tb.Helper()
	if out, err := nodeScript(tb, "ctl", n.dir, "eval", "mnesia:sync_log()."); err != nil || strings.TrimSpace(out) != "ok" {
		tb.Fatalf("have RabbitMQ write its log: %v\n%s", err, out)
	}
}

// Kill ends the node without a word of warning, and waits until it has gone.
func (n *RabbitMQNode) Kill(tb testing.TB) {
	tb.Helper()
	if n.process == nil {
		return
	}
	_ = n.process.Process.Kill() // it may have gone already
	<-n.exited
}

// answers reports whether the node takes connections.
func (n *RabbitMQNode) answers() bool {
	if n.managed {
		if n.Management = n.listensAt("management"); n.Management == "" {
			return false
		}
	}
	n.URL = n.listensAt("url")
	return n.URL != ""
}

// listensAt returns the URL in a file of the node, empty while nobody listens
// there.
func (n *RabbitMQNode) listensAt(file string) string {
	text, err := os.ReadFile(filepath.Join(n.dir, "rabbitmq", file))
	if err != nil {
		return ""
	}
	address, err := url.Parse(strings.TrimSpace(string(text)))
	if err != nil {
		return ""
	}
	conn, err := net.Dial("tcp", address.Host)
	if err != nil {
		return ""
	}
	_ = conn.Close()
	return address.String()
}

func (n *RabbitMQNode) said() string {
	text, _ := os.ReadFile(filepath.Join(n.dir, "out"))
	return string(text)
}

// RabbitMQUser makes a user of the shared test broker, with the rights to
// configure, write and read what the patterns match, and returns a URL that
// has its name and the given password. The user goes with its test.
//
// It needs the broker that "make services-up" starts: one that is only named
// cannot be told (see [Missing]).
func RabbitMQUser(tb testing.TB, password, configure, write, read string) string {
	tb.Helper()
	broker := RabbitMQ(tb)
	state := filepath.Join(root(tb), ".services")
	ours, err := os.ReadFile(filepath.Join(state, "rabbitmq", "url"))
	if err != nil || strings.TrimSpace(string(ours)) != broker {
		Missing(tb, "users can be made only on the RabbitMQ that 'make services-up' starts: run it without "+RabbitMQVariable)
	}
	address, err := url.Parse(broker)
	if err != nil {
		tb.Fatalf("read %s: not a URL", RabbitMQVariable)
	}
	name := fmt.Sprintf("semel-test-%d-%d", os.Getpid(), time.Now().UnixNano())
	address.User = url.UserPassword(name, password)
	control := func(args ...string) {
		tb.Helper()
		if out, err := nodeScript(tb, append([]string{"ctl", state}, args...)...); err != nil {
			tb.Fatalf("run rabbitmqctl %s: %v\n%s", args[0], err, out)
		}
	}
	control("add_user", name, password)
	tb.Cleanup(func() { control("delete_user", name) })
	control("set_permissions", name, configure, write, read)
	return address.String()
}

func nodeScript(tb testing.TB, args ...string) (string, error) {
	tb.Helper()
	out, err := exec.Command(nodeScriptPath(tb), args...).CombinedOutput() //nolint:gosec // our own script
	return string(out), err
}

func nodeScriptPath(tb testing.TB) string {
	tb.Helper()
	return filepath.Join(root(tb), "scripts", "services", "node.sh")
}

// root is the folder of the module. Tests run in their package's folder.
func root(tb testing.TB) string {
	tb.Helper()
	dir, err := os.Getwd()
	if err != nil {
		tb.Fatalf("find the module: %v", err)
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			tb.Fatalf("find the module: no go.mod above the test's folder")
		}
	}
}

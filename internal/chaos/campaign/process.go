package campaign

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"

	"github.com/semel-go/semel/internal/chaos/wire"
)

// process is one child. Its fields belong to the goroutine of its group.
type process struct {
	cmd    *exec.Cmd
	orders *json.Encoder
	stdin  io.Closer
	stderr *tail
	detach func() // takes its deliveries back

	armed   bool // it has obeyed the last order
	told    bool // SIGTERM was sent
	doomed  bool // SIGKILL is on its way
	retired bool // it is to end because the group is done
}

// event is something that a child reported, or its end.
type event struct {
	process *process
	report  wire.Report
	ended   bool
	err     error // of its end
}

// start starts a child of binary that consumes from b. What it reports goes to
// events; its end is the last one.
func start(binary string, setup wire.Setup, b broker, events chan<- event) (*process, error) {
	p := &process{cmd: exec.Command(binary), stderr: &tail{}}
	p.cmd.Stderr = p.stderr
	p.cmd.Env = append(os.Environ(), "GOMAXPROCS=2")
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.stdin, p.orders = stdin, json.NewEncoder(stdin)
	p.detach, err = b.attach(p.cmd)
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		p.detach()
		return nil, fmt.Errorf("start a child: %w", err)
	}
	closeExtra(p.cmd)
	if err := p.orders.Encode(setup); err != nil {
		p.kill()
	}
	go p.listen(stdout, events)
	return p, nil
}

// listen passes on what the child reports until it has ended.
func (p *process) listen(stdout io.Reader, events chan<- event) {
	reports := json.NewDecoder(stdout)
	for {
		var r wire.Report
		if reports.Decode(&r) != nil {
			break
		}
		events <- event{process: p, report: r}
	}
	err := p.cmd.Wait()
	p.detach() // only now: nothing that it answered may be missed
	events <- event{process: p, ended: true, err: err}
}

// order arms the child. One that has just died is told in vain.
func (p *process) order(o wire.Order) {
	p.armed = false
	_ = p.orders.Encode(o)
}

func (p *process) terminate() {
	p.told = true
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
}

// kill ends the child as a power cut would. It is safe after its end.
func (p *process) kill() { _ = p.cmd.Process.Signal(syscall.SIGKILL) }

// killedBy reports that a signal was the end of a child.
func killedBy(err error, signal syscall.Signal) bool {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == signal
}

// closeExtra closes the parent's copies of what the child has inherited.
func closeExtra(cmd *exec.Cmd) {
	for _, f := range cmd.ExtraFiles {
		_ = f.Close()
	}
}

// tail keeps the end of what a child writes to its log. It is safe for
// concurrent use.
type tail struct {
	mu   sync.Mutex // guards text
	text []byte
}

const tailBytes = 4096

// Write implements [io.Writer].
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, b...)
	if len(t.text) > 2*tailBytes {
		t.text = append([]byte(nil), t.text[len(t.text)-tailBytes:]...)
	}
	return len(b), nil
}

// String returns what was kept, without the lines about planted poison.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var kept []string
	for line := range strings.Lines(string(t.text)) {
		if !strings.Contains(line, "message is dead") && !strings.Contains(line, "attempt failed") {
			kept = append(kept, line)
		}
	}
	return strings.TrimSpace(strings.Join(kept, ""))
}

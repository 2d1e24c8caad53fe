package provider

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// reviveAfter is how long a provider that died is away: long enough that its
// clients notice.
const reviveAfter = 50 * time.Millisecond

// Keeper keeps a provider running as a process: when it dies, another one takes
// its place at the same address. It is safe for concurrent use.
type Keeper struct {
	command func(addr string) *exec.Cmd
	addr    string
	deaths  atomic.Int64
	ended   chan struct{} // closed when nobody is kept any more

	mu      sync.Mutex // guards the fields below
	process *os.Process
	closed  bool
}

// Keep starts a provider with what command returns: a program that calls [Main]
// with -attended and this -addr. Its standard streams, but the error stream, are
// the keeper's.
func Keep(command func(addr string) *exec.Cmd) (*Keeper, error) {
	k := &Keeper{command: command, ended: make(chan struct{})}
	cmd, stdin, addr, err := k.start("127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	k.addr = addr
	go k.keep(cmd, stdin)
	return k, nil
}

// URL is where the provider is.
func (k *Keeper) URL() string { return "http://" + k.addr }

// Deaths is how often the provider died.
func (k *Keeper) Deaths() int { return int(k.deaths.Load()) }

// Kill ends the provider as a power cut would. Another one comes.
func (k *Keeper) Kill() { k.signal(syscall.SIGKILL) }

// Close ends the provider for good, once its late work is done.
func (k *Keeper) Close() {
	k.mu.Lock()
	k.closed = true
	k.mu.Unlock()
	k.signal(syscall.SIGTERM)
	<-k.ended
}

func (k *Keeper) signal(signal os.Signal) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.process != nil {
		_ = k.process.Signal(signal)
	}
}

// start starts a provider and reads where it is.
func (k *Keeper) start(at string) (cmd *exec.Cmd, stdin io.Closer, addr string, err error) {
	cmd = k.command(at)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, nil, "", err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, "", err
	}
	k.mu.Lock()
	if k.closed {
		err = errors.New("nobody wants it any more")
	} else if err = cmd.Start(); err == nil {
		k.process = cmd.Process
	}
	k.mu.Unlock()
	if err != nil {
		return nil, nil, "", fmt.Errorf("start a provider: %w", err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		_ = in.Close()
		return nil, nil, "", fmt.Errorf("start a provider: it printed no address: %w", errors.Join(err, cmd.Wait()))
	}
	return cmd, in, strings.TrimSpace(line), nil
}

// keep waits for the end of a provider and starts the next one, until Close.
func (k *Keeper) keep(cmd *exec.Cmd, stdin io.Closer) {
	defer close(k.ended)
	for {
		_ = cmd.Wait()
		_ = stdin.Close()
		var err error
		for first := true; first || err != nil; first = false { // again, if somebody has its port for a moment
			k.mu.Lock()
			closed := k.closed
			k.mu.Unlock()
			if closed {
				return
			}
			if first {
				k.deaths.Add(1)
			}
			time.Sleep(reviveAfter)
			cmd, stdin, _, err = k.start(k.addr)
		}
	}
}

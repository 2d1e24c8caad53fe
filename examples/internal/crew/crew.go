// Package crew runs the processes of an example: this program again, each with
// a part to play, so that one can be killed without a word.
package crew

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"time"
)

// Member is a process to be.
type Member struct {
	// Name tells people which one it is.
	Name string

	// Part is the only argument of the process, by which main knows that it is
	// to call [Play].
	Part string

	// Config is what the process is told, on standard input: a connection string
	// is nobody's business in a list of processes.
	Config any

	// Prints, if set, is told each line that the process prints on standard output.
	Prints func(line string)
}

// Crew is the processes of an example. Make one with [Start]. It is not safe for
// concurrent use.
type Crew struct {
	verbose bool
	failed  chan error
	all     []*process
}

// process is one that runs, or was killed.
type process struct {
	Member
	cmd   *exec.Cmd
	stdin io.Closer
	done  chan struct{}
	said  *tail

	mu    sync.Mutex // guards ended
	ended bool       // we end it ourselves
}

// Start starts processes. A verbose crew prints what they say on standard error.
func Start(verbose bool, members ...Member) (*Crew, error) {
	c := &Crew{verbose: verbose, failed: make(chan error, 1)}
	for _, m := range members {
		if err := c.add(m); err != nil {
			return nil, errors.Join(err, c.Stop(0))
		}
	}
	return c, nil
}

// Watch returns an error as soon as a process ends that was not asked to. It watches
// until ctx ends.
func (c *Crew) Watch(ctx context.Context) error {
	select {
	case err := <-c.failed:
		return err
	case <-ctx.Done():
		return nil
	}
}

// add starts a process. It takes the place of one of its name that was killed.
func (c *Crew) add(m Member) error {
	p, err := c.start(m)
	if err != nil {
		return fmt.Errorf("start %s: %w", m.Name, err)
	}
	for i, before := range c.all {
		if before.Name == m.Name {
			c.all[i] = p
			return nil
		}
	}
	c.all = append(c.all, p)
	return nil
}

func (c *Crew) start(m Member) (*process, error) {
	told, err := json.Marshal(m.Config)
	if err != nil {
		return nil, err
	}
	program, err := self()
	if err != nil {
		return nil, err
	}
	p := &process{Member: m, cmd: exec.Command(program, m.Part), done: make(chan struct{}), said: &tail{}} //nolint:gosec // ourselves
	p.cmd.Stderr = p.said
	if c.verbose {
		p.cmd.Stderr = io.MultiWriter(p.said, os.Stderr)
	}
	dieWithUs(p.cmd)
	if m.Prints != nil {
		p.cmd.Stdout = &lines{told: m.Prints}
	}
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	p.stdin = stdin
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // the thread that starts it must outlive it, see dieWithUs
		err := p.cmd.Start()
		if started <- err; err == nil {
			c.wait(p)
		}
	}()
	if err = <-started; err != nil {
		return nil, err
	}
	_, err = stdin.Write(append(told, '\n'))
	return p, err
}

// wait waits for the end of a process, and reports one that nobody wanted.
func (c *Crew) wait(p *process) {
	_ = p.cmd.Wait() // how it ended is in ProcessState
	close(p.done)
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ended {
		select {
		case c.failed <- fmt.Errorf("%s ended by itself (%s); it said last:\n%s", p.Name, p.cmd.ProcessState, p.said):
		default: // one is enough
		}
	}
}

// find returns the process of a name, which must have been started.
func (c *Crew) find(name string) *process {
	for _, p := range c.all {
		if p.Name == name {
			return p
		}
	}
	panic(fmt.Sprintf("crew: %q was never started", name))
}

// Freeze stops a process where it stands, until [Crew.Thaw]. Where that is not
// possible it does nothing.
func (c *Crew) Freeze(name string) error {
	if err := freeze(c.find(name).cmd.Process); err != nil {
		return fmt.Errorf("freeze %s: %w", name, err)
	}
	return nil
}

// Thaw lets a frozen process go on.
func (c *Crew) Thaw(name string) error {
	if err := thaw(c.find(name).cmd.Process); err != nil {
		return fmt.Errorf("thaw %s: %w", name, err)
	}
	return nil
}

// Replace kills a process with SIGKILL, calls dead, and starts another one in
// its place.
func (c *Crew) Replace(name string, dead func()) error {
	p := c.find(name)
	p.end(func() { _ = p.cmd.Process.Kill() })
	<-p.done
	_ = p.stdin.Close()
	dead()
	return c.add(p.Member)
}

// Stop lets all processes finish what they do, and waits for them. Those that
// need more than patience are killed.
func (c *Crew) Stop(patience time.Duration) error {
	for _, p := range c.all {
		p.end(func() { _ = p.stdin.Close() })
	}
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	var errs []error
	for _, p := range c.all {
		select {
		case <-p.done:
		case <-deadline.C:
			deadline.Reset(0) // and so do the rest
			_ = p.cmd.Process.Kill()
			<-p.done
			continue
		}
		if !p.cmd.ProcessState.Success() {
			errs = append(errs, fmt.Errorf("%s did not end well (%s); it said last:\n%s", p.Name, p.cmd.ProcessState, p.said))
		}
	}
	return errors.Join(errs...)
}

func (p *process) end(how func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	how()
}

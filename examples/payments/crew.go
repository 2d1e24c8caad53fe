package main

import (
	"bytes"
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

	"github.com/jackc/pgx/v5/pgxpool"
)

// members are the names of the consumer processes that share the work.
var members = [...]string{"consumer-1", "consumer-2"}

// crew is the consumer processes.
type crew struct {
	config  consumerConfig
	verbose bool
	pool    *pgxpool.Pool // to look who is at work
	failed  chan error    // a process ended that nobody asked to
	all     [len(members)]*process
}

// process is one consumer process.
type process struct {
	cmd   *exec.Cmd
	stdin io.Closer
	done  chan struct{}
	said  *tail

	mu    sync.Mutex // guards ended
	ended bool       // we end it ourselves
}

func startCrew(config consumerConfig, verbose bool, pool *pgxpool.Pool) (*crew, error) {
	c := &crew{config: config, verbose: verbose, pool: pool, failed: make(chan error, 1)}
	for i := range members {
		if err := c.start(i); err != nil {
			return nil, errors.Join(err, c.stop(0))
		}
	}
	return c, nil
}

// start starts the i-th process: this program again.
func (c *crew) start(i int) error {
	config := c.config
	config.Member = members[i]
	told, err := json.Marshal(config)
	if err != nil {
		return err
	}
	program, err := self()
	if err != nil {
		return err
	}
	p := &process{cmd: exec.Command(program, consumerArg), done: make(chan struct{}), said: &tail{}} //nolint:gosec // ourselves
	p.cmd.Stderr = p.said
	if c.verbose {
		p.cmd.Stderr = io.MultiWriter(p.said, os.Stderr)
	}
	dieWithUs(p.cmd)
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("start %s: %w", members[i], err)
	}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // the thread that starts it must outlive it, see dieWithUs
		err := p.cmd.Start()
		if started <- err; err == nil {
			c.wait(i, p)
		}
	}()
	if err = <-started; err == nil {
		_, err = stdin.Write(append(told, '\n'))
	}
	if err != nil {
		return fmt.Errorf("start %s: %w", members[i], err)
	}
	p.stdin, c.all[i] = stdin, p
	return nil
}

// wait waits for the end of a process, and reports one that nobody wanted.
func (c *crew) wait(i int, p *process) {
	_ = p.cmd.Wait() // how it ended is in ProcessState
	close(p.done)
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ended {
		select {
		case c.failed <- fmt.Errorf("%s ended by itself (%s); it said last:\n%s", members[i], p.cmd.ProcessState, p.said):
		default: // one is enough
		}
	}
}

// kill kills the i-th process with SIGKILL at a moment when messages are in
// flight in it: handlers have written and not committed. It returns how many.
// Another process takes its place.
func (c *crew) kill(ctx context.Context, i int) (inFlight int, err error) {
	p := c.all[i]
	for inFlight == 0 {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		// Freeze it first: what is in flight then is so when it dies.
		if err := freeze(p.cmd.Process); err != nil {
			return 0, fmt.Errorf("freeze %s: %w", members[i], err)
		}
		if inFlight, err = c.openTransactions(ctx, i); err != nil {
			_ = thaw(p.cmd.Process)
			return 0, err
		}
		if inFlight > 0 {
			break
		}
		if err := thaw(p.cmd.Process); err != nil {
			return 0, fmt.Errorf("thaw %s: %w", members[i], err)
		}
		time.Sleep(5 * time.Millisecond)
	}
	p.end(func() { _ = p.cmd.Process.Kill() })
	<-p.done
	_ = p.stdin.Close()
	return inFlight, c.start(i)
}

// openTransactions counts the claims of a process that are not committed.
func (c *crew) openTransactions(ctx context.Context, i int) (n int, err error) {
	err = c.pool.QueryRow(ctx, `
		SELECT count(*)
		FROM pg_stat_activity
		WHERE application_name = $1
		  AND backend_xid IS NOT NULL`, c.config.Schema+" "+members[i]).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("look for messages in flight in %s: %w", members[i], err)
	}
	return n, nil
}

// stop lets all processes finish what they run, and waits for them. Those that
// need more than patience are killed.
func (c *crew) stop(patience time.Duration) error {
	for _, p := range c.all {
		if p != nil {
			p.end(func() { _ = p.stdin.Close() })
		}
	}
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	var errs []error
	for i, p := range c.all {
		if p == nil {
			continue
		}
		select {
		case <-p.done:
		case <-deadline.C:
			deadline.Reset(0) // and so do the rest
			_ = p.cmd.Process.Kill()
			<-p.done
			continue
		}
		if !p.cmd.ProcessState.Success() {
			errs = append(errs, fmt.Errorf("%s did not end well (%s); it said last:\n%s", members[i], p.cmd.ProcessState, p.said))
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

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex // guards text
	text []byte
}

func (t *tail) Write(b []byte) (int, error) {
	const kept = 4 << 10
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, b...)
	t.text = bytes.Clone(t.text[max(0, len(t.text)-kept):])
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.TrimSpace(t.text))
}

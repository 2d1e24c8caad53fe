package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
)

// process is a consumer as its parent knows it. Its methods may be called from
// several goroutines; they take turns.
type process struct {
	cmd    *exec.Cmd
	stdin  io.Closer
	orders *json.Encoder

	reports chan report // closed when the child has said its last
	ended   chan struct{}
	err     error // of its end; read after ended is closed

	mu sync.Mutex // guards orders and reports: held from an order to its answer
}

// launch starts a child and waits until it has begun.
func launch(ctx context.Context, s setup, stderr io.Writer) (*process, report, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, report{}, err
	}
	p := &process{cmd: exec.Command(program, childArgument), reports: make(chan report), ended: make(chan struct{})}
	p.cmd.Stderr = stderr
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, report{}, err
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, report{}, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, report{}, fmt.Errorf("start a consumer: %w", err)
	}
	p.stdin, p.orders = stdin, json.NewEncoder(stdin)
	go p.listen(stdout)
	first, err := p.tell(ctx, s)
	if err != nil {
		p.kill()
		return nil, report{}, err
	}
	return p, first, nil
}

func (p *process) listen(stdout io.Reader) {
	decoder := json.NewDecoder(bufio.NewReader(stdout))
	for {
		var r report
		if decoder.Decode(&r) != nil {
			break
		}
		p.reports <- r
	}
	close(p.reports)
	p.err = p.cmd.Wait()
	close(p.ended)
}

// do has the child carry out an order and returns how it is then.
func (p *process) do(ctx context.Context, o order) (report, error) { return p.tell(ctx, o) }

func (p *process) tell(ctx context.Context, value any) (report, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.orders.Encode(value); err != nil {
		return report{}, errors.Join(fmt.Errorf("tell the consumer: %w", err), p.death())
	}
	return p.answer(ctx)
}

func (p *process) answer(ctx context.Context) (report, error) {
	select {
	case r, ok := <-p.reports:
		if !ok {
			return r, p.death()
		}
		return r, nil
	case <-ctx.Done():
		return report{}, context.Cause(ctx)
	}
}

// death says how a child ended that nobody had told to.
func (p *process) death() error {
	<-p.ended
	return fmt.Errorf("the consumer ended by itself: %s", p.cmd.ProcessState)
}

// frozen stops the child, as a pause of its machine does, until thaw is called.
// Whoever tells it something meanwhile waits.
func (p *process) frozen() (thaw func(), err error) {
	p.mu.Lock()
	if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		p.mu.Unlock()
		return nil, fmt.Errorf("freeze the consumer: %w", err)
	}
	return func() {
		_ = p.cmd.Process.Signal(syscall.SIGCONT)
		p.mu.Unlock()
	}, nil
}

// finish has the child drain and end, and returns its last report.
func (p *process) finish(ctx context.Context) (report, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.stdin.Close(); err != nil {
		return report{}, fmt.Errorf("end the consumer: %w", err)
	}
	last, err := p.answer(ctx)
	if err != nil {
		return last, err
	}
	select {
	case <-p.ended:
		if p.err != nil {
			return last, fmt.Errorf("the consumer did not end well: %w", p.err)
		}
		return last, nil
	case <-ctx.Done():
		return last, context.Cause(ctx)
	}
}

// kill makes sure that the child is gone. It is safe after its end.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	for range p.reports { // an answer that nobody waits for must not hold listen up
	}
	<-p.ended
}

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// memoryRounds is for how many rounds a process runs whose memory is measured.
// What it holds does not grow after the first seconds.
const memoryRounds = 6

// watchChild runs this program again, as what argument says, ends it by closing
// its input, and returns the most memory it held, in MiB, and how many messages
// it handled.
func (b *bench) watchChild(ctx context.Context, argument string, env ...string) (peak float64, handled int, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	program, err := os.Executable()
	if err != nil {
		return 0, 0, err
	}
	cmd := exec.CommandContext(ctx, program, argument)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stderr = b.stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return 0, 0, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return 0, 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, 0, fmt.Errorf("start a process of its own: %w", err)
	}
	stop := time.AfterFunc(memoryRounds*b.round, func() { _ = stdin.Close() })
	defer stop.Stop()
	var kilobytes float64
	if _, err := fmt.Fscan(bufio.NewReader(stdout), &kilobytes, &handled); err != nil {
		cancel()
		return 0, 0, errors.Join(fmt.Errorf("read what the process says: %w", err), cmd.Wait())
	}
	return kilobytes / 1024, handled, cmd.Wait()
}

// asChild does work until its input ends, and says how much memory the process
// had at its highest, and how many messages it has handled.
func asChild(ctx context.Context, stdout io.Writer, work func(context.Context) (handled int64, err error)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	handled, err := work(ctx)
	if err != nil {
		return err
	}
	peak, err := peakMemory()
	if err != nil {
		return err
	}
	fmt.Fprintln(stdout, peak, handled)
	return nil
}

// peakMemory is the most memory this process has held, in kilobytes.
func peakMemory() (int, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, fmt.Errorf("read the process's status (Linux only): %w", err)
	}
	for line := range strings.Lines(string(status)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "VmHWM:" {
			return strconv.Atoi(fields[1])
		}
	}
	return 0, errors.New("read the process's status: it has no VmHWM")
}

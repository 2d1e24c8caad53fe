package inbox_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
)

// childWorks is a second process that works the inbox until SIGTERM. What some
// messages do to it, their type says.
const childWorks = "works"

// Types of messages that do not end as others do.
const (
	typeExit  = "kill.exit"  // os.Exit
	typeStack = "kill.stack" // a stack that overflows
	typeMap   = "kill.map"   // concurrent writes to a map, which no recover catches
	typeBlock = "block"      // until the process is killed
)

// deadly does to its process what the type of a message says.
func deadly(msg *handler.Message) {
	switch msg.Type {
	case typeExit:
		os.Exit(3)
	case typeStack:
		debug.SetMaxStack(1 << 20)
		overflow(new(int))
	case typeMap:
		m := map[int]int{}
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for i := 0; ; i++ {
					m[i%8] = i
				}
			})
		}
		wg.Wait()
	case typeBlock:
		select {}
	}
}

// overflow calls itself until the stack is full.
func overflow(depth *int) {
	if *depth++; *depth > 0 {
		overflow(depth)
	}
}

func childWorking() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	go func() { // its parent has gone: nobody should be left behind
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(2)
	}()
	config, err := pgxpool.ParseConfig(os.Getenv("SEMEL_INBOX_TEST_URL"))
	if err != nil {
		fmt.Println(err)
		return 1
	}
	config.MaxConns = 6
	if os.Getenv("SEMEL_INBOX_TEST_SINGLE") != "" {
		config.MaxConns = 1
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer pool.Close()
	cfg := inbox.Config{
		Schema: os.Getenv("SEMEL_INBOX_TEST_SCHEMA"),
		Lease:  time.Second, HandlerTimeout: time.Minute,
	}
	if os.Getenv("SEMEL_INBOX_TEST_STRICT") != "" {
		cfg.Ordering = inbox.Strict
	}
	in, err := inbox.New(pool, "shipping", func(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
		if err := effect(ctx, tx, msg); err != nil {
			return err
		}
		deadly(msg)
		return nil
	}, cfg)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	if err := in.Work(ctx); err != nil {
		fmt.Println(err)
		return 1
	}
	report()
	return 0
}

// worker is a process that works the inbox.
type worker struct {
	*exec.Cmd
	output *bytes.Buffer // may be read once ended is closed
	ended  chan struct{}
	err    error // of its end; may be read once ended is closed
}

// worker starts one. It does not survive the test.
func (b *testBundle) worker(t *testing.T, env ...string) *worker {
	t.Helper()
	w := &worker{Cmd: exec.Command(os.Args[0]), output: &bytes.Buffer{}, ended: make(chan struct{})} //nolint:gosec // this binary
	w.Env = append(os.Environ(), childEnv+"="+childWorks, "SEMEL_INBOX_TEST_URL="+b.URL, "SEMEL_INBOX_TEST_SCHEMA="+b.Schema)
	w.Env = append(w.Env, env...)
	w.Stdout, w.Stderr = w.output, w.output
	stdin, err := w.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, w.Start())
	go func() {
		defer close(w.ended)
		w.err = w.Wait()
	}()
	t.Cleanup(func() {
		w.kill()
		_ = stdin.Close()
		if t.Failed() {
			t.Logf("process %d: %v\n%.5000s", w.Process.Pid, w.err, w.output)
		}
	})
	return w
}

// kill ends the process as a power cut would.
func (w *worker) kill() {
	_ = w.Process.Kill()
	<-w.ended
}

// finish asks the process to end and requires that it ended well.
func (w *worker) finish(t *testing.T) (output string) {
	t.Helper()
	require.NoError(t, w.Process.Signal(syscall.SIGTERM))
	select {
	case <-w.ended:
	case <-time.After(childDeadline):
		require.FailNow(t, "the process did not end")
	}
	var exit *exec.ExitError
	if errors.As(w.err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGTERM {
		return w.output.String() // it was told before it listened, on a busy machine
	}
	require.NoError(t, w.err, "%.5000s", w.output)
	return w.output.String()
}

// childDeadline is longer than deadline: processes start slowly on a busy machine,
// and leases must run out.
const childDeadline = 2 * time.Minute

// outlive starts one process after the other, each when the one before has died,
// until done. It returns how many died, and the one that lives.
func (b *testBundle) outlive(t *testing.T, done func() bool, env ...string) (deaths int, alive *worker) {
	t.Helper()
	timeout := time.After(childDeadline)
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	w := b.worker(t, env...)
	for !done() {
		select {
		case <-w.ended:
			require.Error(t, w.err, "it ended as if it had been asked to")
			deaths++
			w = b.worker(t, env...)
		case <-ticker.C:
		case <-timeout:
			require.FailNowf(t, "not done", "after %d deaths", deaths)
		}
	}
	return deaths, w
}

// report prints what the parent wants to know of its memory: the most that it
// had, in kB.
func report() {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		fmt.Println(err)
	}
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			fmt.Println("peak", strings.Fields(value)[0])
		}
	}
}

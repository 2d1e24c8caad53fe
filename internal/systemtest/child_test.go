package systemtest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
)

// childEnv holds the order of a child: the test binary as a second process of
// the consumer.
const childEnv = "SEMEL_SYSTEMTEST_CHILD"

// order says what a child does.
type order struct {
	Recipe   recipe
	Database string
	Schema   string
	AsksID   bool // Config.ID looks at messages
}

// childMain consumes until SIGTERM, as an ordinary program would.
func childMain(text string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	go func() { // its parent has gone: nobody should be left behind
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(2)
	}()
	if err := childRun(ctx, text); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func childRun(ctx context.Context, text string) error {
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	config, err := pgxpool.ParseConfig(o.Database)
	if err != nil {
		return err
	}
	config.MaxConns = 6
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return err
	}
	defer pool.Close()
	cfg := inbox.Config{Schema: o.Schema}
	if o.AsksID {
		cfg.ID = askID
	}
	in, err := inbox.New(pool, consumer, deadly(childHandler()), cfg)
	if err != nil {
		return err
	}
	return in.Run(ctx, o.Recipe.source(slog.Default()))
}

// refuseHeader is on messages that the child's handler refuses for good.
const refuseHeader = "refuse"

var errRefused = errors.New("this message asks to be refused")

// childHandler takes JSON objects.
func childHandler() handler.Func {
	return handler.JSON(func(ctx context.Context, tx pgx.Tx, _ map[string]any, msg *handler.Message) error {
		if err := effect(ctx, tx, msg); err != nil {
			return err
		}
		if _, ok := msg.Headers.First(refuseHeader); ok { // after its write: that must not stay
			return handler.Permanent(errRefused)
		}
		return nil
	})
}

// child is a consumer in a process of its own.
type child struct {
	cmd    *exec.Cmd
	output *bytes.Buffer // may be read once ended is closed
	ended  chan struct{}
	err    error // of its end; may be read once ended is closed
}

// spawn starts a child. It does not survive the test.
func (b *testBundle) spawn(t *testing.T, r recipe) *child {
	t.Helper()
	return b.spawnFor(t, order{Recipe: r})
}

func (b *testBundle) spawnFor(t *testing.T, o order) *child {
	t.Helper()
	o.Database, o.Schema = b.URL, b.Schema
	text, err := json.Marshal(o)
	require.NoError(t, err)
	c := &child{cmd: exec.Command(os.Args[0]), output: &bytes.Buffer{}, ended: make(chan struct{})} //nolint:gosec // this binary
	c.cmd.Env = append(os.Environ(), childEnv+"="+string(text))
	c.cmd.Stdout, c.cmd.Stderr = c.output, c.output
	stdin, err := c.cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, c.cmd.Start())
	go func() {
		defer close(c.ended)
		c.err = c.cmd.Wait()
	}()
	t.Cleanup(func() {
		c.kill()
		_ = stdin.Close()
		if t.Failed() {
			t.Logf("child %d: %v\n%.10000s", c.cmd.Process.Pid, c.err, c.output)
		}
	})
	return c
}

// kill ends the child as a power cut would.
func (c *child) kill() {
	_ = c.cmd.Process.Kill()
	<-c.ended
}

// finish asks the child to end and requires that it ended well.
func (c *child) finish(t *testing.T) {
	t.Helper()
	require.NoError(t, c.cmd.Process.Signal(syscall.SIGTERM))
	select {
	case <-c.ended:
	case <-time.After(patience):
		require.FailNow(t, "the child did not end")
	}
	require.NoError(t, c.err, "the end of the child:\n%.5000s", c.output)
}

package schema_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/internal/services"
	"github.com/semel-go/semel/schema"
)

// migrateEnv makes this test program one that migrates the schema it names.
const migrateEnv = "SEMEL_TEST_MIGRATE"

func TestMain(m *testing.M) {
	if name := os.Getenv(migrateEnv); name != "" {
		if err := migrateChild(name); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	services.SkipExamples()
	os.Exit(m.Run())
}

// migrateChild connects, says so, waits for its input to end and prints what it
// applied.
func migrateChild(name string) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, os.Getenv(services.PostgresVariable))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	fmt.Println("ready")
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	done, err := schema.Up(ctx, conn, name, 0)
	for _, m := range done {
		fmt.Println("applied", m.Version)
	}
	return errors.Join(err, schema.Check(ctx, conn, name))
}

// Ten processes of a deployment start at once, each of which migrates first:
// each migration is applied by one of them, and all go on.
func TestUp_TenProcesses(t *testing.T) {
	t.Parallel()

	b := setup(t)
	type child struct {
		cmd    *exec.Cmd
		start  io.Closer
		stdout bytes.Buffer
		stderr bytes.Buffer
	}
	children := make([]*child, 10)
	ready := make(chan error, 2*len(children))
	for i := range children {
		c := &child{cmd: exec.CommandContext(t.Context(), os.Args[0])} //nolint:gosec // ourselves
		c.cmd.Env = append(os.Environ(), migrateEnv+"="+b.name)
		stdin, err := c.cmd.StdinPipe()
		require.NoError(t, err)
		stdout, err := c.cmd.StdoutPipe()
		require.NoError(t, err)
		c.start, c.cmd.Stderr = stdin, &c.stderr
		require.NoError(t, c.cmd.Start())
		children[i] = c
		go func() {
			_, err := io.ReadFull(stdout, make([]byte, len("ready\n")))
			ready <- err
			_, _ = c.stdout.ReadFrom(stdout)
			ready <- nil
		}()
	}
	for range children {
		require.NoError(t, <-ready)
	}

	for _, c := range children {
		require.NoError(t, c.start.Close())
	}

	for range children {
		require.NoError(t, <-ready)
	}
	var applied, want []string
	for _, c := range children {
		require.NoError(t, c.cmd.Wait(), c.stderr.String())
		applied = slices.AppendSeq(applied, strings.Lines(c.stdout.String()))
	}
	for version := range schema.Version {
		want = append(want, fmt.Sprintln("applied", version+1))
	}
	require.ElementsMatch(t, want, applied, "each migration once, by any of them")
	require.NoError(t, schema.CheckAccess(t.Context(), b.pool, b.name, schema.Application))
}

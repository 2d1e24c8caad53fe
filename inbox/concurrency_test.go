package inbox_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
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

// childEnv makes the test binary a second process of a consumer.
const childEnv = "SEMEL_INBOX_TEST_CHILD"

// What the second process does.
const (
	childCopies = "copies" // handles 25 copies of one message at once
	childFrozen = "frozen" // is stopped in the middle of a handler
)

// childMain is the second process. It prints the outcomes.
func childMain() int {
	if os.Getenv(childEnv) == childWorks {
		return childWorking()
	}
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, os.Getenv("SEMEL_INBOX_TEST_URL"))
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer pool.Close()
	stdin := bufio.NewReader(os.Stdin)
	if os.Getenv(childEnv) == childVersions {
		return childWritesVersions(ctx, pool, os.Getenv("SEMEL_INBOX_TEST_SCHEMA"), func() {
			fmt.Println("ready")
			_, _ = stdin.ReadString('\n')
		})
	}
	h, cfg, copies := handler.Func(effect), inbox.Config{Schema: os.Getenv("SEMEL_INBOX_TEST_SCHEMA")}, 25
	if os.Getenv(childEnv) == childFrozen {
		copies = 1
		cfg.HandlerTimeout, cfg.WatchdogGrace = 500*time.Millisecond, 500*time.Millisecond
		var once sync.Once
		h = func(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
			err := effect(ctx, tx, msg)
			once.Do(func() {
				fmt.Println("running")
				_, _ = stdin.ReadString('\n') // the parent stops us here
			})
			return err
		}
	}
	in, err := inbox.New(pool, "shipping", h, cfg)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("ready")
	_, _ = stdin.ReadString('\n') // the parent starts both at once
	for _, outcome := range processCopies(ctx, in, copies) {
		fmt.Println(outcome)
	}
	return 0
}

// child is a second process of the consumer.
type child struct {
	*exec.Cmd
	stdin io.Writer
	lines *bufio.Scanner
}

func (b *testBundle) child(t *testing.T, does string) *child {
	t.Helper()
	c := &child{Cmd: exec.CommandContext(t.Context(), os.Args[0])}
	c.Env = append(os.Environ(), childEnv+"="+does, "SEMEL_INBOX_TEST_URL="+b.URL, "SEMEL_INBOX_TEST_SCHEMA="+b.Schema)
	var err error
	c.stdin, err = c.StdinPipe()
	require.NoError(t, err)
	stdout, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	c.lines = bufio.NewScanner(stdout)
	c.await(t, "ready")
	return c
}

// await reads the next line, which must be this one.
func (c *child) await(t *testing.T, line string) {
	t.Helper()
	require.True(t, c.lines.Scan())
	require.Equal(t, line, c.lines.Text())
}

func (c *child) goOn(t *testing.T) {
	t.Helper()
	_, err := fmt.Fprintln(c.stdin)
	require.NoError(t, err)
}

// processCopies handles n copies of one message at once and returns what each
// caller was told.
func processCopies(ctx context.Context, in *inbox.Inbox, n int) []string {
	told := make([]string, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			outcome, err := in.Process(ctx, message("evt_1"))
			told[i] = outcome.String()
			if err != nil {
				told[i] = "error: " + err.Error()
			}
		})
	}
	wg.Wait()
	return told
}

// Case D5: copies that came at the same moment were handled twice, or all but
// one failed with a unique violation (grape-idempotency#10;
// laravel-cashier-mollie#321).
func TestConcurrency_FiftyCopiesInTwoProcesses(t *testing.T) {
	t.Parallel()

	b := setup(t)
	second := b.child(t, childCopies)
	in := b.inbox(t, effect, inbox.Config{})
	second.goOn(t)
	told := processCopies(t.Context(), in, 25)
	for second.lines.Scan() {
		told = append(told, second.lines.Text())
	}
	require.NoError(t, second.Wait())

	counts := map[string]int{}
	for _, outcome := range told {
		counts[outcome]++
	}
	require.Equal(t, map[string]int{"processed": 1, "duplicate": 49}, counts)
	require.Equal(t, 1, b.effects(t, "evt_1"))
}

// Case D6: a process froze in the middle of a handler (a stopped machine, a long
// pause) past every timeout; another one handled the message; then the first
// woke up and committed too (River JobCompleteTx; wolverine#585).
func TestConcurrency_FrozenProcessWakesUp(t *testing.T) {
	t.Parallel()

	b := setup(t)
	frozen := b.child(t, childFrozen)
	frozen.goOn(t)
	frozen.await(t, "running")
	require.NoError(t, frozen.Process.Signal(syscall.SIGSTOP))

	in := b.inbox(t, effect, inbox.Config{LockTimeout: 100 * time.Millisecond})
	outcome, err := in.Process(t.Context(), message("evt_1"))
	require.NoError(t, err)
	require.Equal(t, handler.Processed, outcome, "the server has freed the claim of the frozen one")
	require.Zero(t, in.Stats().FailedAttempts, "waiting for a copy elsewhere is no failure")

	require.NoError(t, frozen.Process.Signal(syscall.SIGCONT))
	frozen.goOn(t)
	frozen.await(t, "duplicate")
	require.NoError(t, frozen.Wait())
	require.Equal(t, 1, b.effects(t, "evt_1"))
	require.Empty(t, b.letters(t))
}

// Copies in one process wait for the first without a connection: fifty of them
// do not empty a small pool.
func TestConcurrency_CopiesHoldNoConnection(t *testing.T) {
	t.Parallel()

	b := setup(t)
	running, release := make(chan struct{}), make(chan struct{})
	in := b.inbox(t, func(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
		if msg.ID == "evt_1" {
			close(running)
			<-release
		}
		return effect(ctx, tx, msg)
	}, inbox.Config{Workers: 2})

	var wg sync.WaitGroup
	told := make(chan []string, 1)
	wg.Go(func() { told <- processCopies(t.Context(), in, 50) })
	<-running
	require.Eventually(t, func() bool { return in.Stats().Waiting == 49 }, deadline, tick)
	require.EqualValues(t, 1, b.Pool.Stat().AcquiredConns())

	outcome, err := in.Process(t.Context(), message("evt_2"))
	require.NoError(t, err)
	require.Equal(t, handler.Processed, outcome, "another message is not held up by the copies")

	close(release)
	wg.Wait()
	require.Equal(t, 49, strings.Count(strings.Join(<-told, ","), "duplicate"))
	require.Equal(t, 1, b.effects(t, "evt_1"))
}

// When the first copy fails for good, the copies that waited are told the
// truth by the database, not by hope.
func TestConcurrency_FirstCopyNotSettled(t *testing.T) {
	t.Parallel()

	b := setup(t)
	ctx, cancel := context.WithCancel(t.Context())
	running := make(chan struct{})
	var once sync.Once
	in := b.inbox(t, func(hctx context.Context, tx pgx.Tx, msg *handler.Message) error {
		first := false
		once.Do(func() { first = true })
		if first {
			close(running)
			<-hctx.Done()
			return hctx.Err()
		}
		return effect(hctx, tx, msg)
	}, inbox.Config{})

	var wg sync.WaitGroup
	wg.Go(func() {
		_, err := in.Process(ctx, message("evt_1"))
		require.ErrorIs(t, err, context.Canceled)
	})
	<-running
	wg.Go(func() {
		outcome, err := in.Process(t.Context(), message("evt_1"))
		require.NoError(t, err)
		require.Equal(t, handler.Processed, outcome)
	})
	require.Eventually(t, func() bool { return in.Stats().Waiting == 1 }, deadline, tick)
	cancel()
	wg.Wait()
	require.Equal(t, 1, b.effects(t, "evt_1"))
}

// Case D9: under SERIALIZABLE and REPEATABLE READ every collision raises
// 40001; taken for a failure it spent the attempts of healthy messages
// (MassTransit#5114; Altinn/dialogporten#1763).
func TestConcurrency_StrictIsolation(t *testing.T) {
	t.Parallel()

	for _, level := range []pgx.TxIsoLevel{pgx.RepeatableRead, pgx.Serializable} {
		t.Run(strings.ReplaceAll(string(level), " ", ""), func(t *testing.T) {
			t.Parallel()

			b := setup(t)
			pool := b.NewPool(t, 66)
			in := b.inboxOn(t, pool, "shipping", func(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
				if err := effect(ctx, tx, msg); err != nil {
					return err
				}
				_, err := tx.Exec(ctx, `UPDATE balances SET amount = amount + 1 WHERE id = 1`)
				return err
			}, inbox.Config{Workers: 64, HandlerTimeout: 5 * time.Minute, TxOptions: pgx.TxOptions{IsoLevel: level}})

			const messages = 128
			var wg sync.WaitGroup
			for i := range messages {
				wg.Go(func() {
					outcome, err := in.Process(t.Context(), message(fmt.Sprintf("evt_%d", i)))
					require.NoError(t, err)
					require.Equal(t, handler.Processed, outcome)
				})
			}
			wg.Wait()

			require.Equal(t, messages, b.count(t, `SELECT amount FROM balances WHERE id = 1`))
			require.Equal(t, messages, b.count(t, `SELECT count(*) FROM effects`))
			stats := in.Stats()
			require.Positive(t, stats.Reruns, "the test made them collide")
			require.Zero(t, stats.FailedAttempts, "a collision is no failure")
			require.Empty(t, b.letters(t))
		})
	}
}

// A deadlock reruns one of the two at no cost.
func TestConcurrency_Deadlock(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.exec(t, `INSERT INTO balances VALUES (2, 0)`)
	meet := make(chan struct{})
	var arrived sync.WaitGroup
	arrived.Add(2)
	go func() { arrived.Wait(); close(meet) }()
	var firstRuns sync.Map
	in := b.inbox(t, func(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
		order := []int{1, 2}
		if msg.ID == "evt_2" {
			order = []int{2, 1}
		}
		for i, id := range order {
			if _, err := tx.Exec(ctx, `UPDATE balances SET amount = amount + 1 WHERE id = $1`, id); err != nil {
				return err
			}
			if _, again := firstRuns.LoadOrStore(msg.ID, true); i == 0 && !again {
				arrived.Done()
				<-meet // each holds one row and wants the other's
			}
		}
		return nil
	}, inbox.Config{})

	var wg sync.WaitGroup
	for _, id := range []string{"evt_1", "evt_2"} {
		wg.Go(func() {
			outcome, err := in.Process(t.Context(), message(id))
			require.NoError(t, err)
			require.Equal(t, handler.Processed, outcome)
		})
	}
	wg.Wait()
	require.Equal(t, 4, b.count(t, `SELECT sum(amount)::int FROM balances`))
	require.Zero(t, in.Stats().FailedAttempts)
	require.Positive(t, in.Stats().Reruns)
}

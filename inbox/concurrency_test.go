package inbox_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
)

// childEnv makes the test binary a second process of a consumer.
const childEnv = "SEMEL_INBOX_TEST_CHILD"

// childMain handles 25 copies of one message at once and prints the outcomes.
func childMain() int {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, os.Getenv("SEMEL_INBOX_TEST_URL"))
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer pool.Close()
	in, err := inbox.New(pool, "shipping", effect, inbox.Config{Schema: os.Getenv("SEMEL_INBOX_TEST_SCHEMA")})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("ready")
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n') // the parent starts both at once
	for _, outcome := range processCopies(ctx, in, 25) {
		fmt.Println(outcome)
	}
	return 0
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
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), childEnv+"=1", "SEMEL_INBOX_TEST_URL="+b.URL, "SEMEL_INBOX_TEST_SCHEMA="+b.Schema)
	stdin, err := child.StdinPipe()
	require.NoError(t, err)
	stdout, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	lines := bufio.NewScanner(stdout)
	require.True(t, lines.Scan())
	require.Equal(t, "ready", lines.Text())

	in := b.inbox(t, effect, inbox.Config{})
	_, err = fmt.Fprintln(stdin)
	require.NoError(t, err)
	told := processCopies(t.Context(), in, 25)
	for lines.Scan() {
		told = append(told, lines.Text())
	}
	require.NoError(t, child.Wait())

	counts := map[string]int{}
	for _, outcome := range told {
		counts[outcome]++
	}
	require.Equal(t, map[string]int{"processed": 1, "duplicate": 49}, counts)
	require.Equal(t, 1, b.effects(t, "evt_1"))
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
			}, inbox.Config{Workers: 64, TxOptions: pgx.TxOptions{IsoLevel: level}})

			const messages = 256
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

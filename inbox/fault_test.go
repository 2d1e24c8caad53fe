package inbox_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
	"github.com/semel-go/semel/internal/faultproxy"
	"github.com/semel-go/semel/transports/memory"
)

// through returns a pool whose connections can be disturbed.
func (b *testBundle) through(t *testing.T, params string) (*faultproxy.Proxy, *pgxpool.Pool) {
	t.Helper()
	cfg, err := pgxpool.ParseConfig(b.URL)
	require.NoError(t, err)
	upstream := net.JoinHostPort(cfg.ConnConfig.Host, strconv.Itoa(int(cfg.ConnConfig.Port)))
	proxy := faultproxy.New(t, upstream)
	u, err := url.Parse(b.URL)
	require.NoError(t, err)
	u.Host = proxy.Addr()
	q := u.Query()
	q.Set("pool_max_conns", "10")
	q.Set("connect_timeout", "2")
	u.RawQuery = q.Encode() + params
	pool, err := pgxpool.New(t.Context(), u.String())
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return proxy, pool
}

// Case D7: COMMIT reached the server and its answer was lost. Taken for a
// failure the message was handled twice; taken for a success it could be lost
// (pgx#1223).
func TestFault_CommitAnswerLost(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name string
		h    handler.Func
		want handler.Outcome
	}{
		{name: "Effect", h: effect, want: handler.Processed},
		{name: "Superseded", h: ending(handler.Superseded), want: handler.Superseded},
		{name: "DeadLetter", want: handler.Dead, h: func(context.Context, pgx.Tx, *handler.Message) error {
			return handler.Permanent(errors.New("no"))
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			b := setup(t)
			proxy, pool := b.through(t, "")
			calls := 0
			in := b.inboxOn(t, pool, "shipping", func(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
				calls++
				return tt.h(ctx, tx, msg)
			}, inbox.Config{})
			_, err := in.Process(t.Context(), message("evt_0")) // statements are prepared, the checks done
			require.NoError(t, err)
			calls = 0

			// The prepared COMMIT carries no text: it is the first thing sent
			// after the engine says it is about to commit.
			cut := proxy.CutReply(func(sent []byte) bool { return bytes.Contains(sent, []byte("commit")) })
			outcome, err := in.Process(t.Context(), message("evt_1"))
			require.NoError(t, err, "no false failure")
			require.Equal(t, tt.want, outcome)
			select {
			case <-cut:
			case <-time.After(deadline):
				t.Fatal("the COMMIT was never cut: the test proves nothing")
			}

			require.Equal(t, 1, calls, "the claim of the second run knew")
			if tt.want != handler.Dead {
				require.Equal(t, 1, b.effects(t, "evt_1"))
				require.Empty(t, b.letters(t))
			} else {
				letters := b.letters(t)
				require.Len(t, letters, 2)
				require.EqualValues(t, 1, letters[1].Count)
				require.Equal(t, 1, letters[1].Attempts)
				require.Len(t, b.events.kinds(inbox.DeadLettered), 2, "a person is told of each")
			}
			outcome, err = in.Process(t.Context(), message("evt_1"))
			require.NoError(t, err)
			require.Equal(t, handler.Duplicate, outcome)
		})
	}
}

// A connection lost under a handler costs an attempt when the database is
// well, and none when it is away.
func TestFault_ConnectionLostInTheHandler(t *testing.T) {
	t.Parallel()

	b := setup(t)
	proxy, pool := b.through(t, "")
	calls := 0
	in := b.inboxOn(t, pool, "shipping", func(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
		if calls++; calls == 1 {
			proxy.Cut()
		}
		return effect(ctx, tx, msg)
	}, inbox.Config{})

	outcome, err := in.Process(t.Context(), message("evt_1"))

	require.NoError(t, err)
	require.Equal(t, handler.Processed, outcome)
	require.Equal(t, int64(1), in.Stats().FailedAttempts)
	require.Equal(t, 1, b.effects(t, "evt_1"))
}

// While the database is away Process tells its caller, and nothing is spent.
func TestFault_ProcessDuringOutage(t *testing.T) {
	t.Parallel()

	for _, kind := range []string{"Refused", "BlackHole"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()

			b := setup(t)
			proxy, pool := b.through(t, "")
			in := b.inboxOn(t, pool, "shipping", effect, inbox.Config{StatementTimeout: 2 * time.Second, LockTimeout: 200 * time.Millisecond})
			_, err := in.Process(t.Context(), message("evt_0"))
			require.NoError(t, err)

			ctx, cancel := context.WithTimeout(t.Context(), deadline)
			defer cancel()
			if kind == "Refused" {
				proxy.Refuse(true)
				proxy.Cut()
			} else {
				proxy.BlackHole(true) // for new connections
				proxy.Pause()         // for those there are
			}
			_, err = in.Process(ctx, message("evt_1"))
			require.ErrorIs(t, err, inbox.ErrOutage)
			require.NotContains(t, err.Error(), "password")
			require.Zero(t, in.Stats().FailedAttempts)

			proxy.Refuse(false)
			proxy.BlackHole(false)
			proxy.Cut()
			proxy.Resume()
			require.Eventually(t, func() bool {
				outcome, err := in.Process(t.Context(), message("evt_1"))
				return err == nil && outcome == handler.Processed
			}, deadline, 10*time.Millisecond)
			require.Equal(t, 1, b.effects(t, "evt_1"))
			require.Empty(t, b.letters(t))
		})
	}
}

// A whole source waits an outage out: nothing acknowledged, nothing dead, no
// attempt spent, everything handled after.
func TestFault_RunDuringOutage(t *testing.T) {
	t.Parallel()

	b := setup(t)
	proxy, pool := b.through(t, "")
	in := b.inboxOn(t, pool, "shipping", effect, inbox.Config{})
	queue := memory.NewQueue("payments")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var wg sync.WaitGroup
	wg.Go(func() { require.NoError(t, in.Run(ctx, memory.NewSource(queue))) })

	const messages = 300
	publish := func(from, to int) {
		for i := from; i < to; i++ {
			require.NoError(t, queue.Publish(t.Context(), []*handler.Message{message(fmt.Sprintf("evt_%d", i))})[0])
		}
	}
	publish(0, messages/2)
	require.NoError(t, queue.Wait(t.Context()))

	proxy.Refuse(true)
	proxy.Cut()
	publish(messages/2, messages)
	require.Eventually(t, func() bool { return in.Stats().Paused && len(b.events.kinds(inbox.Paused)) == 1 }, deadline, tick)
	proxy.Refuse(false)

	require.NoError(t, queue.Wait(t.Context()))
	cancel()
	wg.Wait()

	require.Equal(t, messages, b.count(t, `SELECT count(DISTINCT message_id) FROM effects`))
	require.Equal(t, messages, b.count(t, `SELECT count(*) FROM effects`))
	require.Empty(t, b.letters(t))
	require.Zero(t, in.Stats().FailedAttempts)
	require.Len(t, b.events.kinds(inbox.Resumed), 1)
}

// The engine's own statement that fails for another reason than the message
// (somebody dropped a table) is an outage too: it is waited out, loudly, and
// does not spin.
func TestFault_TableGoneWhileRunning(t *testing.T) {
	t.Parallel()

	b := setup(t)
	in := b.inbox(t, func(context.Context, pgx.Tx, *handler.Message) error {
		return handler.Permanent(errors.New("no"))
	}, inbox.Config{})
	queue := memory.NewQueue("payments")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var wg sync.WaitGroup
	wg.Go(func() { require.NoError(t, in.Run(ctx, memory.NewSource(queue))) })
	require.NoError(t, queue.Publish(t.Context(), []*handler.Message{message("evt_1")})[0])
	require.NoError(t, queue.Wait(t.Context()))

	table := pgx.Identifier{b.Schema, "dead_letters"}.Sanitize()
	b.exec(t, `ALTER TABLE `+table+` RENAME TO hidden`)
	require.NoError(t, queue.Publish(t.Context(), []*handler.Message{message("evt_2")})[0])
	require.Eventually(t, func() bool { return in.Stats().Waiting == 1 }, deadline, tick)
	b.exec(t, `ALTER TABLE `+pgx.Identifier{b.Schema, "hidden"}.Sanitize()+` RENAME TO dead_letters`)

	require.NoError(t, queue.Wait(t.Context()))
	cancel()
	wg.Wait()
	require.Len(t, b.letters(t), 2)
}

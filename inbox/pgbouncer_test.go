package inbox_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
	"github.com/semel-go/semel/transports/memory"
)

// through returns a pool on a PgBouncer's URL.
func through(t *testing.T, url, settings string) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), url+settings)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool
}

// Behind PgBouncer in transaction mode each transaction may run in another
// session. Two processes, each with many connections, get every message twice.
func TestPgBouncer(t *testing.T) {
	t.Parallel()

	for _, mode := range []string{"cache_describe", "exec"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()

			b := setup(t)
			url, settings := b.PgBouncer(t), "&pool_max_conns=8&default_query_exec_mode="+mode
			first, second := through(t, url, settings), through(t, url, settings)
			b.requireWholeEngine(t, first)

			var copies sync.WaitGroup
			var processed [100]int
			var mu sync.Mutex
			for _, pool := range []*pgxpool.Pool{first, second} {
				in := b.inboxOn(t, pool, "billing", effect, inbox.Config{})
				for i := range processed {
					copies.Go(func() {
						outcome, err := in.Process(t.Context(), message(fmt.Sprint("many_", i)))
						mu.Lock()
						defer mu.Unlock()
						if err == nil && outcome == handler.Processed {
							processed[i]++
						} else if err != nil || outcome != handler.Duplicate {
							t.Errorf("many_%d: %s, %v", i, outcome, err)
						}
					})
				}
			}
			copies.Wait()
			for i, n := range processed {
				require.Equal(t, 1, n, "many_%d", i)
				require.Equal(t, 1, b.effects(t, fmt.Sprint("many_", i)))
			}
		})
	}
}

// The inbox behind it: many are stored at once, leases are renewed and given back.
func TestPgBouncer_Inbox(t *testing.T) {
	t.Parallel()

	for _, mode := range []string{"cache_describe", "exec"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()

			b := setup(t)
			pool := through(t, b.PgBouncer(t), "&pool_max_conns=8&default_query_exec_mode="+mode)
			h := &blocking{release: make(chan struct{})}
			in := b.inboxOn(t, pool, "shipping", h.handle, inbox.Config{Workers: 1, Lease: 3 * time.Second, DrainTimeout: time.Minute})
			msgs := []*handler.Message{message("evt_1"), message("evt_2"), message("evt_3")}
			for _, want := range []handler.Outcome{handler.Stored, handler.Duplicate} {
				outcomes, err := in.StoreAll(t.Context(), msgs)
				require.NoError(t, err)
				require.Equal(t, []handler.Outcome{want, want, want}, outcomes)
			}
			stop := works(t, in)

			const later = `SELECT count(*) FROM inbox_messages WHERE lease_owner IS NOT NULL AND ready_at > stored_at + interval '7 seconds'`
			require.Eventually(t, func() bool { return b.count(t, later) == 2 }, deadline, tick, "renewed while they wait for the one that runs")
			taken := 0
			for _, e := range b.events.kinds(inbox.Taken) {
				taken += e.Messages
			}
			require.Equal(t, 3, taken, "no lease ran out")
			stopped := make(chan struct{})
			go func() { defer close(stopped); stop() }()
			require.Eventually(t, func() bool { return len(b.events.kinds(inbox.Draining)) == 1 }, deadline, tick)
			close(h.release)
			<-stopped
			require.Equal(t, 1, b.effects(t, "evt_1")+b.effects(t, "evt_2")+b.effects(t, "evt_3"))
			require.Equal(t, 2, b.count(t, `SELECT count(*) FROM inbox_messages WHERE lease_owner IS NULL AND ready_at <= clock_timestamp()`), "given back")
		})
	}
}

// By default pgx prepares its statements, and a later transaction does not find
// them, or finds those of others. Messages would fail for that.
func TestPgBouncer_PreparedStatements(t *testing.T) {
	t.Parallel()

	b := setup(t)
	in := b.inboxOn(t, through(t, b.PgBouncer(t), ""), "shipping", effect, inbox.Config{})

	_, err := in.Process(t.Context(), message("evt_1"))
	require.ErrorIs(t, err, inbox.ErrPooler)
	require.ErrorContains(t, err, "default_query_exec_mode=cache_describe")
	err = in.Run(t.Context(), memory.NewSource(memory.NewQueue("payments")))
	require.ErrorIs(t, err, inbox.ErrPooler)
	require.Zero(t, b.effects(t, "evt_1"))
}

// A pool of one connection cannot find it out at start. Then it is an outage,
// never a failed attempt of a message.
func TestPgBouncer_PreparedStatementsNoticedLate(t *testing.T) {
	t.Parallel()

	b := setup(t)
	url := b.PgBouncer(t)
	var processes sync.WaitGroup
	for p := range 4 {
		in := b.inboxOn(t, through(t, url, "&pool_max_conns=1"), fmt.Sprint("consumer-", p), effect, inbox.Config{})
		processes.Go(func() {
			for i := range 25 {
				outcome, err := in.Process(t.Context(), message(fmt.Sprint("evt_", i)))
				if err != nil && !errors.Is(err, inbox.ErrPooler) || err == nil && outcome != handler.Processed {
					t.Errorf("evt_%d: %s, %v", i, outcome, err)
				}
			}
			if failed := in.Stats().FailedAttempts; failed > 0 {
				t.Errorf("%d attempts failed", failed)
			}
		})
	}
	processes.Wait()
	require.Empty(t, b.letters(t))
}

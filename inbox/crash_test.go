package inbox_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
)

// Case P1: a message made its process exit, was delivered again to the next one,
// and so on for ever; those beside it were punished with it
// (pg-transactional-outbox; DBOS). Of the stored inbox: at the third death it is
// dead, all others take effect once, and the process lives on.
func TestCrash_StoredMessageKillsTheProcess(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name   string
		deadly string
		strict bool
		single bool // the pool has one connection
	}{
		{name: "Exit", deadly: typeExit},
		{name: "StackOverflow", deadly: typeStack},
		{name: "ConcurrentMapWrites", deadly: typeMap},
		{name: "ExitInOrder", deadly: typeExit, strict: true},
		{name: "ExitOnOneConnection", deadly: typeExit, single: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			const n, keys, killer = 100, 10, 30
			b := setup(t)
			cfg, env := inbox.Config{}, []string{}
			if tt.strict {
				cfg.Ordering = inbox.Strict
				env = append(env, "SEMEL_INBOX_TEST_STRICT=true")
			}
			if tt.single {
				env = append(env, "SEMEL_INBOX_TEST_SINGLE=true")
			}
			in := b.inbox(t, effect, cfg)
			behind := 0 // the killer in its key
			for i := range n {
				msg := keyed(fmt.Sprint("evt_", i), fmt.Sprint(i%keys))
				if i == killer {
					msg.Type = tt.deadly
				} else if tt.strict && i > killer && i%keys == killer%keys {
					behind++
				}
				_, err := in.Store(t.Context(), msg)
				require.NoError(t, err)
			}

			deaths, alive := b.outlive(t, func() bool {
				return b.count(t, `SELECT count(*) FROM effects`) >= n-1-behind && b.count(t, `SELECT count(*) FROM dead_letters`) > 0
			}, env...)

			require.Equal(t, 3, deaths)
			letters := b.letters(t)
			require.Len(t, letters, 1)
			require.Equal(t, dlq.Crashed, letters[0].Reason)
			require.Equal(t, fmt.Sprint("evt_", killer), letters[0].Message.ID)
			require.Contains(t, letters[0].Errors[0], "3 died")
			if tt.strict { // what waits for it goes on when a person has decided
				require.Equal(t, behind+1, b.inboxRows(t))
				require.NoError(t, inbox.NewStore(b.Schema).Discard(t.Context(), b.Pool, letters[0].ID, "ann"))
			}
			_, err := in.Store(t.Context(), message("after"))
			require.NoError(t, err)
			require.Eventually(t, func() bool { return b.inboxRows(t) == 0 && b.effects(t, "after") == 1 }, childDeadline, tick)
			alive.finish(t)
			rows, err := b.Pool.Query(t.Context(), `SELECT DISTINCT message_id || ' ' || count(*) FROM effects GROUP BY message_id HAVING count(*) <> 1 OR message_id = $1`, fmt.Sprint("evt_", killer))
			require.NoError(t, err)
			wrong, err := pgx.CollectRows(rows, pgx.RowTo[string])
			require.NoError(t, err)
			require.Empty(t, wrong)
			require.Equal(t, n, b.count(t, `SELECT count(*) FROM effects`))
			require.Zero(t, b.count(t, `SELECT count(*) FROM attempt_journal`), "nothing is left of it")
			require.Len(t, b.letters(t), 1)
		})
	}
}

// Case P1: messages that had only waited when their process died were taken for
// killers. Those that wait behind another of their key, for the suspect before
// them, or for a lock that another process holds, run none of the user's code:
// however often they are killed, they are handled.
func TestCrash_KilledWhileWaiting(t *testing.T) {
	t.Parallel()

	const kills = 5
	tests := []struct {
		name     string
		store    []*handler.Message
		locked   string   // its record is locked by somebody else meanwhile
		crashed  int      // of them, as they were under way each time
		handled  []string // at last
		waitsFor string   // a query: how many are where they should be when the process is killed
	}{
		{
			name: "BehindASuspect", crashed: 1, handled: []string{"behind"},
			store: []*handler.Message{{ID: "block", Type: typeBlock, Key: []byte("k")}, {ID: "behind", Key: []byte("k")}},
			waitsFor: `SELECT count(*) FROM pg_stat_activity WHERE application_name = $1 AND backend_start > $2
				AND state = 'idle in transaction' AND clock_timestamp() - state_change > interval '0.3 s'`,
		},
		{
			name: "ForALock", handled: []string{"locked"}, locked: "locked",
			store:    []*handler.Message{{ID: "locked"}},
			waitsFor: `SELECT count(*) FROM pg_stat_activity WHERE application_name = $1 AND backend_start > $2 AND wait_event_type = 'Lock'`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			b := setup(t)
			in := b.inbox(t, effect, inbox.Config{})
			for _, msg := range tt.store {
				_, err := in.Store(t.Context(), msg)
				require.NoError(t, err)
			}
			holder, err := b.Pool.Begin(t.Context())
			require.NoError(t, err)
			_, err = holder.Exec(t.Context(), `SELECT FROM processed_messages WHERE message_text = $1 FOR UPDATE`, tt.locked)
			require.NoError(t, err)
			t.Cleanup(func() { _ = holder.Rollback(t.Context()) })

			letters := func() int { return b.count(t, `SELECT count(*) FROM dead_letters`) }
			for range kills {
				var now time.Time // the database's
				require.NoError(t, b.Pool.QueryRow(t.Context(), `SELECT clock_timestamp()`).Scan(&now))
				w := b.worker(t)
				require.Eventually(t, func() bool {
					return b.count(t, tt.waitsFor, b.Schema, now) > 0 || letters() > 0
				}, childDeadline, tick)
				w.kill()
			}
			require.NoError(t, holder.Rollback(t.Context()))
			w := b.worker(t)
			require.Eventually(t, func() bool { return b.inboxRows(t) == 0 }, childDeadline, tick)
			w.finish(t)

			for _, id := range tt.handled {
				require.Equal(t, 1, b.effects(t, id), id)
			}
			require.Equal(t, tt.crashed, letters())
		})
	}
}

package inbox_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/inbox"
)

// remember writes records of n messages of a consumer that were handled so long
// ago.
func (b *testBundle) remember(t *testing.T, consumer, prefix string, n int, age string) {
	t.Helper()
	b.exec(t, `INSERT INTO processed_messages (consumer_id, message_id, message_text, outcome, processed_at)
		SELECT consumer_id($1), message_id($2 || n), $2 || n, 1, clock_timestamp() - $4::text::interval FROM generate_series(1, $3::int) AS n`, consumer, prefix, n, age)
}

// due makes it time to purge what shipping handled.
func (b *testBundle) due(t *testing.T) {
	t.Helper()
	b.exec(t, `INSERT INTO consumers (id, name, purging_at) VALUES (consumer_id('shipping'), 'shipping', clock_timestamp() - interval '7 h')
		ON CONFLICT (id) DO UPDATE SET purging_at = excluded.purging_at`)
}

// turn is when shipping's records were purged last, by somebody's turn.
func (b *testBundle) turn(t *testing.T) (at time.Time) {
	t.Helper()
	require.NoError(t, b.Pool.QueryRow(t.Context(), `SELECT purging_at FROM consumers WHERE name = 'shipping'`).Scan(&at))
	return at
}

// purging makes an inbox that looks often whether it is time to purge.
func (b *testBundle) purging(t *testing.T, pool *pgxpool.Pool, every time.Duration, log *lines, cfg inbox.Config) *inbox.Inbox {
	t.Helper()
	cfg.Logger = slog.New(slog.NewTextHandler(log, nil))
	in := b.inboxOn(t, pool, "shipping", effect, cfg)
	inbox.PurgeEvery(in, every, 20*time.Millisecond)
	return in
}

// Runs purge what was handled long ago while they handle messages. Of two one
// does, and what starts again does not do it again. A pool of two connections is
// enough for both.
func TestRun_Purges(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.due(t)
	const old = 3000
	b.remember(t, "shipping", "old-", old, "15 days")
	b.remember(t, "shipping", "young-", 10, "13 days")
	b.remember(t, "billing", "old-", 10, "15 days")
	log := &lines{}
	run := func(round int) {
		sources, runs := make([]*scripted, 2), make([]*started, 2)
		for i := range runs {
			sources[i] = newScripted()
			runs[i] = start(t, b.purging(t, b.NewPool(t, 2), 6*time.Hour, log, inbox.Config{}), sources[i])
		}
		for n := range 50 {
			for i, r := range runs { // the same messages, as after a rebalance
				id := fmt.Sprintf("round-%d-%d", round, n)
				require.NoError(t, r.sink.Deliver(t.Context(), sources[i].delivery(message(id), nil)))
			}
		}
		require.Eventually(t, func() bool { return log.has("old rows are purged", fmt.Sprintf("deleted=%d", old)) }, deadline, tick)
		for n := range 50 {
			id := fmt.Sprintf("round-%d-%d", round, n)
			require.Eventually(t, func() bool { return sources[0].answer(id) == "settled" && sources[1].answer(id) == "settled" }, deadline, tick)
			require.Equal(t, 1, b.effects(t, id))
		}
		for _, r := range runs {
			r.stop()
			require.NoError(t, r.wait(t))
		}
	}

	run(1)
	turn := b.turn(t)
	run(2)
	require.Equal(t, turn, b.turn(t), "what starts again purges nothing")
	require.Equal(t, 1, log.count("old rows are purged"), "one of them")
	require.Zero(t, log.count("level=WARN"))
	require.Equal(t, 10, b.count(t, `SELECT count(*) FROM processed WHERE consumer = 'shipping' AND message LIKE 'young-%'`))
	require.Equal(t, 10, b.count(t, `SELECT count(*) FROM processed_messages WHERE consumer_id = consumer_id('billing')`), "another consumer's are its own")
	require.Equal(t, 120, b.count(t, `SELECT count(*) FROM processed_messages`))
}

// An application that may not delete says so once, and handles messages all the
// same: somebody else may purge.
func TestRun_MayNotPurge(t *testing.T) {
	t.Parallel()

	for _, right := range []string{"DELETE ON processed_messages", "UPDATE (purging_at) ON consumers", "UPDATE (purged_before) ON consumers"} {
		t.Run(right, func(t *testing.T) {
			t.Parallel()

			b := setup(t)
			b.due(t)
			b.remember(t, "shipping", "old-", 10, "15 days")
			pool := b.asApplication(t)
			role := pool.Config().ConnConfig.User
			b.exec(t, `REVOKE `+right+` FROM `+role)
			log := &lines{}
			src := newScripted()
			r := start(t, b.purging(t, pool, time.Millisecond, log, inbox.Config{}), src)

			require.Eventually(t, func() bool {
				return log.has("level=WARN", "old rows are not purged, this role may not", "42501", "consumer=shipping")
			}, deadline, tick)
			require.NoError(t, r.sink.Deliver(t.Context(), src.delivery(message("evt_1"), nil)))
			require.Eventually(t, func() bool { return src.answer("evt_1") == "settled" }, deadline, tick)
			require.Equal(t, 11, b.count(t, `SELECT count(*) FROM processed_messages`))
			b.exec(t, `GRANT `+right+` TO `+role)
			require.Eventually(t, func() bool { return log.has("old rows are purged", "deleted=10") }, deadline, tick)
			r.stop()
			require.NoError(t, r.wait(t))
			require.Equal(t, 1, log.count("level=WARN"))
		})
	}
}

// The purge ends with its run, whatever it waits for.
func TestRun_PurgeEndsWithIt(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.due(t)
	b.remember(t, "shipping", "old-", 10, "15 days")
	tx, err := b.Pool.Begin(t.Context()) // holds what the purge must lock
	require.NoError(t, err)
	defer func() { require.NoError(t, tx.Rollback(context.WithoutCancel(t.Context()))) }()
	_, err = tx.Exec(t.Context(), `SELECT FROM processed_messages FOR UPDATE`)
	require.NoError(t, err)
	r := start(t, b.purging(t, b.NewPool(t, 5), 6*time.Hour, &lines{}, inbox.Config{}), newScripted())
	require.Eventually(t, func() bool {
		return b.count(t, `SELECT count(*) FROM pg_stat_activity WHERE application_name = $1 AND wait_event_type = 'Lock'`, b.Schema) > 0
	}, deadline, tick, "the purge waits")

	r.stop()
	require.NoError(t, r.wait(t))
}

func TestRun_KeepsForever(t *testing.T) {
	t.Parallel()

	b := setup(t)
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()

	inbox.Purges(ctx, b.purging(t, b.Pool, time.Millisecond, &lines{}, inbox.Config{Retention: inbox.KeepForever}))

	require.NoError(t, ctx.Err(), "there is no loop")
}

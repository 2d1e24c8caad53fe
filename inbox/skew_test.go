package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
)

// noTimes finds times of day among what is sent to the database. Of a message that
// fails there must be none: a duration means the same on every host, a time of day
// only on its own.
type noTimes struct {
	mu    sync.Mutex // guards what follows
	found []string
	asked int
}

func (n *noTimes) see(sql string, args []any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asked++
	for _, arg := range args {
		switch arg := arg.(type) {
		case time.Time:
			n.found = append(n.found, sql)
		case pgtype.Timestamptz:
			if arg.Valid {
				n.found = append(n.found, sql)
			}
		}
	}
}

func (n *noTimes) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	n.see(data.SQL, data.Args)
	return ctx
}

func (n *noTimes) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (n *noTimes) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}

func (n *noTimes) TraceBatchQuery(_ context.Context, _ *pgx.Conn, data pgx.TraceBatchQueryData) {
	n.see(data.SQL, data.Args)
}

func (n *noTimes) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

// The clocks of the hosts on which workers run are an hour from the database's,
// before or behind it. All that they know of each other's work stands in the
// database by its own clock, and they tell it only durations: what was put off is
// handled when its time has come, and what a dead one held when its lease is over,
// not an hour later or at once.
func TestWork_ClockSkew(t *testing.T) {
	t.Parallel()

	for _, skew := range []string{"1 hour", "-1 hour"} {
		t.Run(skew, func(t *testing.T) {
			t.Parallel()

			const n, dead = 20, `'00000000-0000-7000-8000-000000000001'`
			b := setup(t)
			b.exec(t, `CREATE FUNCTION clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE
				AS $$ SELECT pg_catalog.clock_timestamp() + interval '`+skew+`' $$`)
			b.exec(t, `CREATE FUNCTION now() RETURNS timestamptz LANGUAGE sql STABLE
				AS $$ SELECT pg_catalog.now() + interval '`+skew+`' $$`)
			sent := &noTimes{}
			config, err := pgxpool.ParseConfig(b.URL)
			require.NoError(t, err)
			config.ConnConfig.RuntimeParams["search_path"] = b.Schema + ", pg_catalog" // its functions come first
			config.ConnConfig.Tracer = sent
			config.MaxConns = 6
			pool, err := pgxpool.NewWithConfig(t.Context(), config)
			require.NoError(t, err)
			t.Cleanup(pool.Close)
			var off time.Duration
			require.NoError(t, pool.QueryRow(t.Context(), `SELECT clock_timestamp() - pg_catalog.clock_timestamp()`).Scan(&off))
			require.InDelta(t, time.Hour, off.Abs(), float64(time.Minute), "the database's clock is off")

			var mended atomic.Bool
			h := func(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
				switch {
				case msg.ID == "later" && !mended.Load():
					return handler.RetryAfter(30*time.Minute, errors.New("not now"))
				case msg.ID == "twice" && !mended.Load():
					mended.Store(true)
					return errors.New("not yet")
				}
				return effect(ctx, tx, msg)
			}
			cfg := inbox.Config{QuickAttempts: 1, Retry: retries, Lease: 2 * time.Second}
			in := b.inboxOn(t, pool, "shipping", h, cfg)
			for i := range n {
				_, err := in.Store(t.Context(), keyed(fmt.Sprint("evt_", i), fmt.Sprint(i%3)))
				require.NoError(t, err)
			}
			// A worker of another host died with one of them: its lease ends in a second, by the database's clock.
			_, err = pool.Exec(t.Context(), `UPDATE inbox_messages SET lease_owner = `+dead+`, ready_at = clock_timestamp() + interval '1 s' WHERE message_text = 'evt_7'`)
			require.NoError(t, err)
			outcome, err := in.Process(t.Context(), message("later"))
			require.NoError(t, err)
			require.Equal(t, handler.Stored, outcome)
			works(t, in)
			works(t, b.inboxOn(t, pool, "shipping", h, cfg))
			_, err = in.Process(t.Context(), message("twice"))
			require.NoError(t, err)

			require.Eventually(t, func() bool { return b.inboxRows(t) == 1 }, deadline, tick, "all but the one that waits")
			require.Equal(t, n+1, b.count(t, `SELECT count(*) FROM effects`))
			require.Zero(t, b.effects(t, "later"))
			var until, failing time.Duration // by the database's clock
			require.NoError(t, pool.QueryRow(t.Context(), `SELECT ready_at - clock_timestamp(), clock_timestamp() - first_failed_at FROM inbox_messages`).Scan(&until, &failing))
			require.InDelta(t, 30*time.Minute, until, float64(time.Minute))
			require.InDelta(t, 0, failing, float64(time.Minute))

			sent.mu.Lock()
			defer sent.mu.Unlock()
			require.Empty(t, sent.found)
			require.Greater(t, sent.asked, 100)
		})
	}
}

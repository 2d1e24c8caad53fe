package outbox_test

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/internal/faultproxy"
)

// noTimes finds times of day among what is sent to the database. There must be
// none: a duration means the same on every host, a time of day only on its own.
type noTimes struct {
	mu    sync.Mutex
	found []string
	asked int
}

func (n *noTimes) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asked++
	for _, arg := range data.Args {
		switch arg.(type) {
		case time.Time, *time.Time, pgtype.Timestamptz, pgtype.Timestamp:
			n.found = append(n.found, fmt.Sprintf("%v: %s", arg, data.SQL))
		}
	}
	return ctx
}

func (n *noTimes) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// skewed returns a pool on which the database's clock differs by that much from
// this host's, and the proxy in front of it.
func (b *testBundle) skewed(t *testing.T, times *noTimes) (*faultproxy.Proxy, *pgxpool.Pool) {
	t.Helper()
	cfg, err := pgxpool.ParseConfig(b.URL)
	require.NoError(t, err)
	proxy := faultproxy.New(t, net.JoinHostPort(cfg.ConnConfig.Host, strconv.Itoa(int(cfg.ConnConfig.Port))))
	host, port, err := net.SplitHostPort(proxy.Addr())
	require.NoError(t, err)
	n, err := strconv.ParseUint(port, 10, 16)
	require.NoError(t, err)
	cfg.ConnConfig.Host, cfg.ConnConfig.Port, cfg.ConnConfig.Fallbacks = host, uint16(n), nil
	cfg.ConnConfig.RuntimeParams["search_path"] = b.Schema + ", pg_catalog" // its functions come first
	cfg.ConnConfig.Tracer = times
	cfg.MaxConns = 6
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return proxy, pool
}

// The clocks of the hosts on which relays run are an hour from the database's,
// before or behind it, and so as much as that from each other's. All that relays
// know of each other stands in the database by its own clock, and they tell it
// only durations. Both take their share, order is kept, and what a dead one
// owned is taken over when its lease has run out, not an hour later or at once.
func TestRelay_ClockSkew(t *testing.T) {
	t.Parallel()

	for _, skew := range []string{"1 hour", "-1 hour"} {
		t.Run(skew, func(t *testing.T) {
			t.Parallel()

			b := setup(t)
			b.exec(t, `CREATE FUNCTION semel.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE
				AS $$ SELECT pg_catalog.clock_timestamp() + interval '`+skew+`' $$`)
			times := &noTimes{}
			proxy, dyingPool := b.skewed(t, times)
			_, pool := b.skewed(t, times)
			var off time.Duration
			require.NoError(t, pool.QueryRow(t.Context(), `SELECT clock_timestamp() - pg_catalog.clock_timestamp()`).Scan(&off))
			require.InDelta(t, time.Hour, off.Abs(), float64(time.Minute), "the database's clock is off")
			p := &recorder{ordered: true}
			cfg := brief()
			cfg.Lease = 5 * time.Second
			dying, other := b.relayOn(t, dyingPool, p, cfg), b.relayOn(t, pool, p, cfg)
			b.awaitLeases(t, 32, 32)
			const aggregates, each = 20, 10
			write := func(from int64) {
				for v := range int64(each) {
					for a := range aggregates {
						b.write(t, order(fmt.Sprint(a), from+v))
					}
				}
			}
			write(1)
			b.awaitPublished(t, aggregates*each)
			require.Positive(t, dying.Stats().Kinds["order"].Sent)
			require.Positive(t, other.Stats().Kinds["order"].Sent)
			require.Zero(t, dying.Stats().LeasesLost+other.Stats().LeasesLost)
			require.Zero(t, dying.Stats().Stale+other.Stats().Stale)
			owned := query[time.Duration](t, b, `SELECT min(expires_at) - pg_catalog.clock_timestamp() FROM semel.relay_leases`)
			require.InDelta(t, off, owned, float64(time.Minute), "leases end by the database's clock")

			proxy.Pause() // as if it were dead
			write(each + 1)

			b.awaitPublished(t, 2*aggregates*each)
			requireOrder(t, p.messages(), 2*aggregates*each)
			proxy.Resume()
			times.mu.Lock()
			defer times.mu.Unlock()
			require.Empty(t, times.found)
			require.Greater(t, times.asked, 10)
		})
	}
}

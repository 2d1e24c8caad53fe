package outbox_test

import (
	"context"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/internal/faultproxy"
	"github.com/semel-go/semel/outbox"
)

// brief is a config whose leases run out soon.
func brief() outbox.RelayConfig {
	cfg := quick()
	cfg.Lease, cfg.AttemptTimeout = 2*time.Second, 200*time.Millisecond
	return cfg
}

// What a dead relay owned is published by others once its lease has run out,
// and not before.
func TestRelay_Takeover(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.write(t, order("1", 1))
	b.exec(t, `INSERT INTO semel.relays (id, name, alive_until) VALUES ('00000000-0000-7000-8000-000000000001', 'dead', clock_timestamp() + interval '2 s')`)
	b.exec(t, `UPDATE semel.relay_leases SET owner = '00000000-0000-7000-8000-000000000001', epoch = 7, expires_at = clock_timestamp() + interval '2 s'`)
	b.relay(t, &recorder{ordered: true}, brief())

	b.awaitPublished(t, 1)
	b.awaitLeases(t, 64)

	require.True(t, query[bool](t, b, `SELECT published_at > started_at + interval '1 s' FROM semel.outbox, semel.relays WHERE name <> 'dead'`))
	require.Equal(t, int64(8), query[int64](t, b, `SELECT min(epoch) FROM semel.relay_leases`))
}

// Case O3: the lease ends in the middle of a batch, and the old owner wakes up.
// What it still wants to note is rejected, counted and told; the tail of its
// batch is not sent (langwatch#7037).
func TestRelay_OldOwnerWakesUp(t *testing.T) {
	t.Parallel()

	b := setup(t)
	var events []outbox.Event
	for v := range int64(50) {
		events = append(events, order("1", v+1))
	}
	b.write(t, events...)
	proxy, pool := b.through(t)
	log := &logbook{}
	cfg := brief()
	cfg.Schema, cfg.Logger, cfg.Batch = b.Schema, log.logger(), 10
	sent := make(chan struct{}, 100)
	wake := make(chan struct{})
	var frozen atomic.Bool
	frozen.Store(true)
	old := &recorder{ordered: true, answer: func(context.Context, *handler.Message) error {
		if frozen.Load() { // as a process that is stopped: not even its deadline is seen
			sent <- struct{}{}
			<-wake
			frozen.Store(false)
		}
		return nil
	}}
	first, err := outbox.NewRelay(pool, old, cfg)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- first.Run(ctx) }()
	<-sent
	proxy.Pause() // it cannot prolong its lease

	second := &recorder{ordered: true}
	b.relay(t, second, brief())
	b.awaitPublished(t, 50)
	requireOrder(t, second.messages(), 50)
	close(wake)
	require.Eventually(t, func() bool { return len(old.messages()) == 10 }, deadline, 10*time.Millisecond)
	proxy.Resume()

	require.Eventually(t, func() bool { return first.Stats().Stale == 10 }, deadline, 10*time.Millisecond)
	require.Eventually(t, func() bool { return strings.Contains(log.String(), "published events that it may not note") }, deadline, 10*time.Millisecond)
	stop()
	require.NoError(t, <-done)
	require.Len(t, old.messages(), 10, "the tail was not sent")
}

// through returns a pool whose connections can be disturbed.
func (b *testBundle) through(t *testing.T) (*faultproxy.Proxy, *pgxpool.Pool) {
	t.Helper()
	cfg, err := pgxpool.ParseConfig(b.URL)
	require.NoError(t, err)
	proxy := faultproxy.New(t, net.JoinHostPort(cfg.ConnConfig.Host, strconv.Itoa(int(cfg.ConnConfig.Port))))
	u, err := url.Parse(b.URL)
	require.NoError(t, err)
	u.Host = proxy.Addr()
	q := u.Query()
	q.Set("pool_max_conns", "6")
	u.RawQuery = q.Encode()
	pool, err := pgxpool.New(t.Context(), u.String())
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return proxy, pool
}

// The database is away: nothing is sent that cannot be noted for ever, and it
// goes on by itself.
func TestRelay_DatabaseAway(t *testing.T) {
	t.Parallel()

	b := setup(t)
	proxy, pool := b.through(t)
	log := &logbook{}
	cfg := brief()
	cfg.Schema, cfg.Logger = b.Schema, log.logger()
	p := &recorder{ordered: true}
	relay, err := outbox.NewRelay(pool, p, cfg)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- relay.Run(ctx) }()
	b.write(t, order("1", 1))
	b.awaitPublished(t, 1)

	proxy.Refuse(true)
	proxy.Cut()
	b.write(t, order("1", 2))
	log.await(t, "relay cannot read the outbox")
	proxy.Refuse(false)

	b.awaitPublished(t, 2)
	stop()
	require.NoError(t, <-done)
	requireOrder(t, p.messages(), 2)
}

func (l *logbook) await(t *testing.T, text string) {
	t.Helper()
	require.Eventually(t, func() bool { return strings.Contains(l.String(), text) }, deadline, 10*time.Millisecond, text)
}

// A relay is stopped while it takes its leases. A statement that is broken off in its
// commit still takes them, and after all was given back: they had no owner that
// lives, and nobody published their events until they ran out. It comes to its end,
// and then all is given back.
func TestRelay_StoppedWhileItTakesLeases(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.exec(t, `CREATE SEQUENCE semel.ends`)
	b.exec(t, `CREATE FUNCTION semel.slowly() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			IF EXISTS (SELECT FROM taken WHERE owner IS NOT NULL) THEN PERFORM pg_sleep(1), nextval('ends'); END IF;
			RETURN NULL;
		END $$`)
	b.exec(t, `CREATE TRIGGER slowly AFTER UPDATE ON semel.relay_leases REFERENCING NEW TABLE AS taken FOR EACH STATEMENT EXECUTE FUNCTION semel.slowly()`)
	taking := func() int {
		return query[int](t, b, `SELECT count(*)::int FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND application_name = $1`, b.Schema)
	}
	relay := b.relay(t, &recorder{}, outbox.RelayConfig{})
	require.Eventually(t, func() bool { return taking() == 1 }, deadline, tick)
	relay.stop()
	require.Zero(t, taking())
	require.True(t, query[bool](t, b, `SELECT is_called FROM semel.ends`), "it was not broken off")
	require.Zero(t, query[int](t, b, `SELECT count(*)::int FROM semel.relay_leases WHERE owner IS NOT NULL`))
	require.Zero(t, query[int](t, b, `SELECT count(*)::int FROM semel.relays`))
}

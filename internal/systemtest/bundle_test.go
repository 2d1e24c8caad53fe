package systemtest_test

import (
	"context"
	"maps"
	"net"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
	"github.com/semel-go/semel/internal/faultproxy"
	"github.com/semel-go/semel/internal/pgtest"
)

const (
	// patience is how long a test waits for a state. It is long because the
	// machine is busy with other tests.
	patience = time.Minute
	tick     = 10 * time.Millisecond

	consumer = "shipping"
)

// testBundle is a database, a broker, and a log. The table of effects has no
// unique key that would hide a message that took effect twice.
type testBundle struct {
	*pgtest.DB
	broker broker
	log    *logbook
}

func setup(t *testing.T, kind string, p place) *testBundle {
	t.Helper()
	b := setupDatabase(t)
	b.broker = newBroker(t, kind, p)
	return b
}

// setupDatabase makes a bundle that has no broker yet.
func setupDatabase(t *testing.T) *testBundle {
	t.Helper()
	b := &testBundle{DB: pgtest.New(t), log: &logbook{}}
	b.exec(t, `CREATE TABLE effects (seq bigserial, name text NOT NULL, key text NOT NULL, version bigint NOT NULL)`)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("logged at Warn and above:\n%.20000s", b.log)
		}
	})
	return b
}

// effect is the handler of most tests: it leaves one row.
func effect(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
	_, err := tx.Exec(ctx, `INSERT INTO effects (name, key, version) VALUES ($1, $2, $3)`, nameOf(msg), string(msg.Key), msg.Version)
	return err
}

func (b *testBundle) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	_, err := b.Pool.Exec(t.Context(), sql, args...)
	require.NoError(t, err)
}

// inbox makes an inbox with short pauses; what cfg sets stands.
func (b *testBundle) inbox(t *testing.T, pool *pgxpool.Pool, h handler.Func, cfg inbox.Config) *inbox.Inbox {
	t.Helper()
	cfg.Schema, cfg.Logger = b.Schema, b.log.logger()
	if cfg.QuickDelay == 0 {
		cfg.QuickDelay, cfg.QuickMaxDelay = time.Millisecond, 20*time.Millisecond
	}
	cfg.OutageMaxDelay = 200 * time.Millisecond
	in, err := inbox.New(pool, consumer, h, cfg)
	require.NoError(t, err)
	return in
}

// through returns a pool whose connections go through a proxy.
func (b *testBundle) through(t *testing.T) (*pgxpool.Pool, *faultproxy.Proxy) {
	t.Helper()
	config, err := pgxpool.ParseConfig(b.URL)
	require.NoError(t, err)
	config.MaxConns = 10
	to := config.ConnConfig
	proxy := faultproxy.New(t, net.JoinHostPort(to.Host, strconv.Itoa(int(to.Port))))
	host, port, err := net.SplitHostPort(proxy.Addr())
	require.NoError(t, err)
	number, err := strconv.ParseUint(port, 10, 16)
	require.NoError(t, err)
	to.Host, to.Port, to.Fallbacks = host, uint16(number), nil
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool, proxy
}

// running is a consumer while it runs.
type running struct {
	*tap
	in   *inbox.Inbox
	stop context.CancelFunc
	done chan error
}

// run runs a source. Whatever becomes of the test, it has ended after it.
func (b *testBundle) run(t *testing.T, in *inbox.Inbox, src handler.Source) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context())) // the test decides when it ends
	r := &running{tap: newTap(src), in: in, stop: cancel, done: make(chan error, 1)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.done <- in.Run(ctx, r.tap)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return r
}

// start runs the consumer of the bundle's broker with a handler.
func (b *testBundle) start(t *testing.T, h handler.Func, cfg inbox.Config) *running {
	t.Helper()
	return b.run(t, b.inbox(t, b.Pool, h, cfg), b.broker.recipe().source(b.log.logger()))
}

// ended waits until Run has returned.
func (r *running) ended(t *testing.T) error {
	t.Helper()
	select {
	case err := <-r.done:
		return err
	case <-time.After(patience):
		require.FailNow(t, "Run did not return")
		return nil
	}
}

// finish drains the consumer and requires that it ended well.
func (r *running) finish(t *testing.T) {
	t.Helper()
	r.stop()
	require.NoError(t, r.ended(t))
}

// awaitSettled waits until n deliveries were settled.
func (r *running) awaitSettled(t *testing.T, n int) {
	t.Helper()
	await(t, strconv.Itoa(n)+" deliveries settled", func() bool { return r.passed().settled >= n })
}

// exhaust consumes until the broker has nothing left, as the next process
// would, and requires that nothing of it takes effect again.
func (b *testBundle) exhaust(t *testing.T) {
	t.Helper()
	effects := b.count(t)
	for b.broker.left(t) > 0 {
		r := b.start(t, childHandler(), inbox.Config{})
		await(t, "nothing left", func() bool { return r.inFlight() == 0 && b.broker.left(t) == 0 })
		r.finish(t)
	}
	require.Equal(t, effects, b.count(t))
}

// await waits until a state is reached.
func await(t *testing.T, what string, reached func() bool) {
	t.Helper()
	deadline := time.After(patience)
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for !reached() {
		select {
		case <-ticker.C:
		case <-deadline:
			require.FailNowf(t, "not reached", "%s", what)
		}
	}
}

// count returns how many effects there are, copies too.
func (b *testBundle) count(t *testing.T) int {
	t.Helper()
	var n int
	require.NoError(t, b.Pool.QueryRow(t.Context(), `SELECT count(*) FROM effects`).Scan(&n))
	return n
}

// effects returns how often each message took effect.
func (b *testBundle) effects(t *testing.T) map[string]int {
	t.Helper()
	rows, err := b.Pool.Query(t.Context(), `SELECT name FROM effects`)
	require.NoError(t, err)
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	effects := map[string]int{}
	for _, name := range names {
		effects[name]++
	}
	return effects
}

// awaitEffects waits until as many messages took effect as there are names.
func (b *testBundle) awaitEffects(t *testing.T, n int) {
	t.Helper()
	await(t, strconv.Itoa(n)+" effects", func() bool { return b.count(t) >= n })
}

// requireOneEffectEach is the promise: none lost, none doubled, none invented.
func (b *testBundle) requireOneEffectEach(t *testing.T, names []string) {
	t.Helper()
	effects := b.effects(t)
	var lost, doubled []string
	for _, name := range names {
		switch n := effects[name]; {
		case n == 0:
			lost = append(lost, name)
		case n > 1:
			doubled = append(doubled, name)
		}
		delete(effects, name)
	}
	require.Empty(t, lost, "PROMISE BROKEN: lost")
	require.Empty(t, doubled, "PROMISE BROKEN: took effect more than once")
	require.Empty(t, slices.Collect(maps.Keys(effects)), "PROMISE BROKEN: took effect and should not have")
}

// letters returns the dead letters by the name of their message.
func (b *testBundle) letters(t *testing.T) map[string]*dlq.Letter {
	t.Helper()
	letters := map[string]*dlq.Letter{}
	for _, letter := range b.allLetters(t) {
		name := nameOf(letter.Message)
		require.NotContains(t, letters, name, "two dead letters for one message")
		letters[name] = letter
	}
	return letters
}

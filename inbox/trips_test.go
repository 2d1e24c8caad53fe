package inbox_test

import (
	"context"
	"crypto/rand"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
)

// Round trips are what a message costs once the database is a network away.
// The numbers stand in docs/design.md.
func TestTrips(t *testing.T) {
	t.Parallel()

	refusal := errors.New("no stock")
	oneStatement := effect
	refused := func(context.Context, pgx.Tx, *handler.Message) error { return handler.Permanent(refusal) }
	prepare := func(context.Context, *handler.Message) error { return nil }
	later := func(context.Context, pgx.Tx, *handler.Message) error { return handler.RetryAfter(time.Hour, refusal) }

	tests := []struct {
		name   string
		h      handler.Func
		cfg    inbox.Config
		before []*handler.Message // handled, not counted
		msg    *handler.Message
		want   int64
	}{
		{name: "Handled", h: oneStatement, msg: message("evt_1"), want: 3},
		{name: "HandledWithKey", h: oneStatement, msg: keyed("evt_1", "k"), want: 3},
		{name: "HandledStrict", h: oneStatement, cfg: inbox.Config{Ordering: inbox.Strict}, msg: keyed("evt_1", "k"), want: 3}, // the look at its key rides along
		{name: "Stored", h: later, cfg: inbox.Config{Retry: retries}, msg: message("evt_1"), want: 2 + 1},                      // the failed attempt, then into the inbox
		{
			name: "StrictBehind", h: later, cfg: inbox.Config{Ordering: inbox.Strict, Retry: retries},
			before: []*handler.Message{keyed("evt_0", "k")}, msg: keyed("evt_1", "k"), want: 2 + 2, // the look, ROLLBACK; then into the inbox
		},
		{name: "ViaInbox", h: refused, cfg: inbox.Config{Ordering: inbox.ViaInbox}, msg: keyed("evt_1", "k"), want: 2},
		{name: "DeadLetterStrict", h: refused, cfg: inbox.Config{Ordering: inbox.Strict}, msg: keyed("evt_1", "k"), want: 2 + 4}, // it parks
		{name: "Duplicate", h: oneStatement, before: []*handler.Message{message("evt_1")}, msg: message("evt_1"), want: 2},
		{name: "WithPrepare", h: oneStatement, cfg: inbox.Config{Prepare: prepare}, msg: message("evt_1"), want: 4},
		{name: "DeadLetter", h: refused, msg: message("evt_1"), want: 2 + 3}, // the failed attempt, then the dead letter
		{name: "DeadLetterWithRoute", h: refused, cfg: inbox.Config{DeadLetterRoute: route}, msg: message("evt_1"), want: 2 + 4},
		{
			name: "DeadLetterWithRouteAndKey", h: refused, cfg: inbox.Config{DeadLetterRoute: route},
			msg: &handler.Message{ID: "evt_1", Key: []byte("k")}, want: 2 + 5, // its lock too
		},
		{name: "Old", h: oneStatement, before: []*handler.Message{old("evt_1", 20*day)}, msg: old("evt_2", 20*day), want: 3},
		{name: "OldWithPrepare", h: oneStatement, cfg: inbox.Config{Prepare: prepare}, before: []*handler.Message{old("evt_1", 20*day)}, msg: old("evt_2", 20*day), want: 4},
		{name: "NoUsableID", h: oneStatement, msg: message(""), want: 3},
		{name: "NoUsableIDAgain", h: oneStatement, before: []*handler.Message{message("")}, msg: message(""), want: 5},
		{
			name: "Mismatch", h: oneStatement, before: []*handler.Message{message("evt_1")},
			msg: &handler.Message{ID: "evt_1", Type: "order.paid", Payload: []byte(`{"id":2}`)}, want: 5,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			b := setup(t)
			pool, trips := b.countingPool(t)
			in := b.inboxOn(t, pool, "shipping", tt.h, tt.cfg)
			warm := b.inboxOn(t, pool, "warming", tt.h, tt.cfg) // prepares the statements
			for _, msg := range append(tt.before, tt.msg) {
				_, err := warm.Process(t.Context(), msg)
				require.NoError(t, err)
			}
			for _, msg := range append(tt.before, message("another")) { // the last: the start checks, and the look whether the inbox has room
				_, err := in.Process(t.Context(), msg)
				require.NoError(t, err)
			}

			trips.Store(0)
			_, err := in.Process(t.Context(), tt.msg)
			require.NoError(t, err)

			require.Equal(t, tt.want, trips.Load())
		})
	}
}

// The look at how old a message is travels with its claim; then ROLLBACK, and its
// dead letter as ever.
func TestTrips_TooOld(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.purged(t, "14 days")
	pool, trips := b.countingPool(t)
	in := b.inboxOn(t, pool, "shipping", effect, inbox.Config{})
	for _, want := range []handler.Outcome{handler.Dead, handler.Dead} { // the first prepares the statements
		trips.Store(0)
		outcome, err := in.Process(t.Context(), old(rand.Text(), 20*day))
		require.NoError(t, err)
		require.Equal(t, want, outcome)
	}
	require.EqualValues(t, 2+3, trips.Load())
}

// Replay: load; BEGIN, into the inbox, COMMIT; claim, the handler's statement,
// resolve, COMMIT.
func TestTrips_Replay(t *testing.T) {
	t.Parallel()

	b := setup(t)
	var r refusing
	pool, trips := b.countingPool(t)
	in := b.inboxOn(t, pool, "shipping", r.handle, inbox.Config{})
	for _, id := range []string{"evt_1", "evt_2"} {
		_, err := in.Process(t.Context(), message(id))
		require.NoError(t, err)
	}
	letters := b.letters(t)
	r.mended.Store(true)
	_, err := in.Replay(t.Context(), letters[0].ID) // prepares the statements
	require.NoError(t, err)

	trips.Store(0)
	outcome, err := in.Replay(t.Context(), letters[1].ID)
	require.NoError(t, err)
	require.Equal(t, handler.Processed, outcome)
	require.Equal(t, int64(8), trips.Load())
}

// A worker handles a message of the inbox in as many trips as one of a source; in
// order there is one more, in which the next of its key becomes ready.
func TestTrips_Worker(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name     string
		ordering inbox.Ordering
		want     int64
	}{
		{name: "PerKey", ordering: inbox.PerKey, want: 3},
		{name: "Strict", ordering: inbox.Strict, want: 4},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			b := setup(t)
			pool, held := b.heldTrips(t)
			in := b.inboxOn(t, pool, "shipping", func(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
				tx.Conn().PgConn().Conn().(*tripConn).handles.Store(true)
				return effect(ctx, tx, msg)
			}, inbox.Config{Ordering: tt.ordering})
			const n = 10
			for i := range n {
				_, err := in.Store(t.Context(), keyed(rand.Text(), string('a'+rune(i%2))))
				require.NoError(t, err)
			}
			stop := works(t, in)
			require.Eventually(t, func() bool { return b.inboxRows(t) == 0 }, deadline, tick)
			stop()

			trips := make([]int64, n)
			for i := range trips {
				trips[i] = <-held
			}
			for _, one := range trips[n/2:] { // the first prepares the statements
				require.Equal(t, tt.want, one, "%v", trips)
			}
		})
	}
}

// heldTrips is a pool of one connection that tells how many trips it made for a
// message, from when it was acquired until it was released.
func (b *testBundle) heldTrips(t *testing.T) (*pgxpool.Pool, <-chan int64) {
	t.Helper()
	config, _ := b.countingConfig(t)
	held := make(chan int64, 100)
	config.PrepareConn = func(_ context.Context, conn *pgx.Conn) (bool, error) {
		c := conn.PgConn().Conn().(*tripConn)
		c.own.Store(0)
		c.handles.Store(false)
		return true, nil
	}
	config.AfterRelease = func(conn *pgx.Conn) bool {
		if c := conn.PgConn().Conn().(*tripConn); c.handles.Load() {
			held <- c.own.Load()
		}
		return true
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool, held
}

// countingPool is a pool of one connection that counts its round trips.
func (b *testBundle) countingPool(t *testing.T) (*pgxpool.Pool, *atomic.Int64) {
	t.Helper()
	config, trips := b.countingConfig(t)
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool, trips
}

func (b *testBundle) countingConfig(t *testing.T) (*pgxpool.Config, *atomic.Int64) {
	t.Helper()
	config, err := pgxpool.ParseConfig(b.URL)
	require.NoError(t, err)
	trips := new(atomic.Int64)
	config.MaxConns = 1
	config.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return false }
	config.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, addr)
		return &tripConn{Conn: conn, trips: trips}, err
	}
	return config, trips
}

// tripConn counts a trip for what is written after something was read.
type tripConn struct {
	net.Conn
	trips    *atomic.Int64 // of all connections
	answered atomic.Bool

	own     atomic.Int64 // since it was acquired last
	handles atomic.Bool  // a handler has it
}

// Write implements [net.Conn].
func (c *tripConn) Write(b []byte) (int, error) {
	if c.answered.Swap(false) {
		c.trips.Add(1)
		c.own.Add(1)
	}
	return c.Conn.Write(b)
}

// Read implements [net.Conn].
func (c *tripConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.answered.Store(true)
	}
	return n, err
}

package outbox_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/schema"
)

// Case O1: the transaction that commits late is of an aggregate that goes on at
// once. Its second event stands behind what the relay has read, its first one
// before it: the second must not be published first.
func TestRelay_LateCommitKeepsOrder(t *testing.T) {
	t.Parallel()

	b := setup(t)
	p := &recorder{ordered: true}
	cfg := quick()
	cfg.Poll = time.Millisecond
	b.relay(t, p, cfg)
	const rounds = 20
	for i := range rounds {
		late := b.begin(t)
		require.NoError(t, outbox.Lock(t.Context(), late, "order", "late"))
		require.NoError(t, b.writer.Write(t.Context(), late, order("late", int64(2*i+1))))
		b.write(t, order("other", int64(i+1)))
		b.awaitPublished(t, 3*i+1)

		require.NoError(t, late.Commit(t.Context()))
		b.write(t, order("late", int64(2*i+2)))
		b.awaitPublished(t, 3*i+3)
	}

	requireOrder(t, p.messages(), 3*rounds)
}

// A transaction has written two events of an aggregate, one behind the reader
// and one before it, and commits while the reader reads.
func TestRelay_CommitDuringARead(t *testing.T) {
	t.Parallel()

	b := setup(t)
	p := &recorder{ordered: true}
	cfg, err := pgxpool.ParseConfig(b.URL)
	require.NoError(t, err)
	cfg.MaxConns = 6
	var commit atomic.Pointer[func()]
	cfg.ConnConfig.Tracer = beforeQuery{"WHERE o.seq > $1", func() {
		if do := commit.Swap(nil); do != nil {
			(*do)()
		}
	}}
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	b.relayOn(t, pool, p, quick())
	const rounds = 10
	for i := range rounds {
		tx := b.begin(t)
		require.NoError(t, b.writer.Write(t.Context(), tx, order("late", int64(2*i+1))))
		b.write(t, order("other", int64(2*i+1)))
		b.awaitPublished(t, 4*i+1)
		require.NoError(t, b.writer.Write(t.Context(), tx, order("late", int64(2*i+2))))
		b.write(t, order("other", int64(2*i+2)))
		committed := make(chan error, 1)
		do := func() { committed <- tx.Commit(t.Context()) }
		commit.Store(&do)
		require.NoError(t, <-committed)
		b.awaitPublished(t, 4*i+4)
	}

	requireOrder(t, p.messages(), 4*rounds)
}

// A transaction commits when the reader has read past its event, and before it
// looks again at who writes.
func TestRelay_CommitBehindARead(t *testing.T) {
	t.Parallel()

	b := setup(t)
	p := &recorder{ordered: true}
	cfg, err := pgxpool.ParseConfig(b.URL)
	require.NoError(t, err)
	cfg.MaxConns = 6
	var commit atomic.Pointer[func()]
	cfg.ConnConfig.Tracer = afterRead{&commit}
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	b.relayOn(t, pool, p, quick())
	const rounds = 10
	for i := range rounds {
		long := b.begin(t) // it makes the reader look again
		require.NoError(t, b.writer.Write(t.Context(), long, order("long", int64(i+1))))
		b.write(t, order("other", int64(3*i+1)))
		b.awaitPublished(t, 6*i+1)
		tx := b.begin(t)
		require.NoError(t, b.writer.Write(t.Context(), tx, order("late", int64(2*i+1))))
		committed := make(chan error, 1)
		do := func() { committed <- tx.Commit(t.Context()) }
		commit.Store(&do)
		b.write(t, order("other", int64(3*i+2)))
		require.NoError(t, <-committed)
		b.write(t, order("late", int64(2*i+2)), order("other", int64(3*i+3)))
		b.awaitPublished(t, 6*i+5)
		require.NoError(t, long.Commit(t.Context()))
		b.awaitPublished(t, 6*i+6)
	}

	requireOrder(t, p.messages(), 6*rounds)
}

// afterRead does something once after events were read.
type afterRead struct{ do *atomic.Pointer[func()] }

type isRead struct{}

func (a afterRead) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	return context.WithValue(ctx, isRead{}, strings.Contains(data.SQL, "WHERE o.seq > $1"))
}

func (a afterRead) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryEndData) {
	if ctx.Value(isRead{}) != true || data.CommandTag.RowsAffected() == 0 {
		return
	}
	if do := a.do.Swap(nil); do != nil {
		(*do)()
	}
}

// The server's clock was set back between two events of an aggregate. Their
// order is that of the number that was drawn while its writer held it.
func TestRelay_ClockSetBack(t *testing.T) {
	t.Parallel()

	b := setup(t)
	var events []outbox.Event
	for v := range int64(5) {
		events = append(events, order("1", v+1), order("2", v+1))
	}
	b.write(t, events...)
	b.exec(t, `UPDATE semel.outbox SET created_at = created_at - make_interval(hours => version::int)`)
	p := &recorder{ordered: true}
	b.relay(t, p, quick())

	b.awaitPublished(t, len(events))
	requireOrder(t, p.messages(), len(events))
}

// Part of a batch finds its part of the broker away while later events of the
// same aggregate wait in the lane already. They must not go out before it when
// it may go on.
func TestRelay_OutageOfAPartKeepsOrder(t *testing.T) {
	t.Parallel()

	b := setup(t)
	const batch = 10
	var first atomic.Bool
	first.Store(true)
	p := &recorder{ordered: true, answer: func(ctx context.Context, msg *handler.Message) error {
		switch {
		case string(msg.Key) == "far" && first.CompareAndSwap(true, false):
			takes(ctx, 300*time.Millisecond) // until all is read
			return handler.Unavailable(errNo)
		case string(msg.Key) == "slow":
			takes(ctx, 700*time.Millisecond) // until the aggregate may go on
		}
		return nil
	}}
	events := []outbox.Event{order("far", 1)} // the first batch
	for i := range batch - 1 {
		events = append(events, order(fmt.Sprint("a", i), 1))
	}
	events = append(events, order("slow", 1)) // the second
	for i := range batch - 1 {
		events = append(events, order(fmt.Sprint("b", i), 1))
	}
	events = append(events, order("far", 2)) // the third
	b.write(t, events...)
	cfg := quick()
	cfg.Batch, cfg.AttemptTimeout = batch, 5*time.Second
	b.relay(t, p, cfg)

	b.awaitPublished(t, len(events))
	requireOrder(t, p.messages(), len(events))
}

// An event that has failed before finds its part of the broker away. Its
// aggregate still waits for it.
func TestRelay_RetryFindsAPartAway(t *testing.T) {
	t.Parallel()

	b := setup(t)
	var attempts atomic.Int64
	p := &recorder{ordered: true}
	p.answer = func(ctx context.Context, msg *handler.Message) error {
		if string(msg.Key) != "bad" || msg.Version != 1 {
			takes(ctx, time.Millisecond) // so that others are in its batch
			return nil
		}
		switch n := attempts.Add(1); {
		case n == 1:
			return errNo
		case n < 4:
			return handler.Unavailable(errNo)
		default:
			return nil
		}
	}
	events := []outbox.Event{order("bad", 1), order("bad", 2)}
	const others = 600
	for v := range int64(others) { // there is always something that gets through
		events = append(events, order("good", v+1))
	}
	b.write(t, events...)
	b.relay(t, p, quick())

	b.awaitPublished(t, others+2)
	require.Equal(t, []int64{1, 2}, b.sentOf(p, "bad"))
}

// takes is how long a broker takes for an answer.
func takes(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// sentOf is which versions of an aggregate were confirmed, in order.
func (b *testBundle) sentOf(p *recorder, aggregate string) (versions []int64) {
	for _, m := range p.messages() {
		if string(m.Key) == aggregate {
			versions = append(versions, m.Version)
		}
	}
	return versions
}

// By policy an aggregate goes on without an event that is refused for good.
// What waits in the lane behind it goes on in order.
func TestRelay_ContinueKeepsOrder(t *testing.T) {
	t.Parallel()

	b := setup(t)
	p := &recorder{ordered: true, answer: func(ctx context.Context, msg *handler.Message) error {
		switch {
		case string(msg.Key) == "bad" && msg.Version == 1:
			takes(ctx, 300*time.Millisecond) // until all is read
			return handler.Permanent(errNo)
		case string(msg.Key) == "slow":
			takes(ctx, 300*time.Millisecond) // until that is noted
		}
		return nil
	}}
	b.write(t, order("bad", 1), order("a", 1), // batches of two
		order("bad", 2), order("slow", 1),
		order("b", 1), order("slow", 2),
		order("bad", 3), order("c", 1))
	cfg := quick()
	cfg.Batch, cfg.Quarantine, cfg.AttemptTimeout = 2, outbox.Continue, 5*time.Second
	b.relay(t, p, cfg)

	b.awaitPublished(t, 7)
	require.Equal(t, []int64{2, 3}, b.sentOf(p, "bad"))
}

// Two events of one aggregate are held back, by hand or from a time with
// another policy: when the first goes on, the second still holds the third.
func TestRelay_TwoHeldEvents(t *testing.T) {
	t.Parallel()

	b := setup(t)
	p := &recorder{ordered: true}
	b.write(t, order("1", 1), order("1", 2), order("1", 3))
	b.exec(t, `UPDATE semel.outbox SET next_attempt_at = clock_timestamp() + interval '1 s' WHERE version = 1`)
	b.exec(t, `UPDATE semel.outbox SET quarantined_at = clock_timestamp() WHERE version = 2`)
	b.relay(t, p, quick())
	b.awaitStates(t, "1", "published quarantined pending")

	b.write(t, order("2", 1))
	b.awaitStates(t, "2", "published")
	require.Equal(t, []int64{1}, b.sentOf(p, "1"))
	b.exec(t, `UPDATE semel.outbox SET discarded_at = clock_timestamp() WHERE version = 2`)
	b.awaitStates(t, "1", "published discarded published")
}

// A failed attempt is noted late: another relay owns the shard by then and may
// have passed the event. It must not start to wait behind its back.
func TestRelay_LateFailureIsNotNoted(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.write(t, order("1", 1))
	person := b.begin(t)
	take := func() {
		_, err := person.Exec(t.Context(), schema.Qualify(`UPDATE semel.relay_leases
			SET owner = '00000000-0000-7000-8000-000000000001', epoch = epoch + 1, expires_at = clock_timestamp() + interval '1 h'`, b.Schema))
		require.NoError(t, err)
	}
	taken := sync.OnceFunc(take)
	relay := b.relay(t, &recorder{ordered: true, answer: func(context.Context, *handler.Message) error {
		taken()
		return errNo
	}}, quick())
	require.Eventually(t, func() bool {
		return query[bool](t, b, `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%first_failed_at%' AND query LIKE '%' || $1 || '%')`, b.Schema)
	}, deadline, tick, "the failure waits for the lease")

	require.NoError(t, person.Commit(t.Context()))

	require.Eventually(t, func() bool { return relay.Stats().Stale > 0 }, deadline, tick)
	require.Zero(t, query[int](t, b, `SELECT attempts FROM semel.outbox`))
	require.Equal(t, "pending", b.states(t, "1"))
}

// The backlog of an aggregate that is held back is long, and the database slow:
// the relay still comes to what is behind it.
func TestRelay_LongBacklogOnASlowDatabase(t *testing.T) {
	t.Parallel()

	b := setup(t)
	b.exec(t, `INSERT INTO semel.outbox (id, aggregatetype, aggregateid, type, quarantined_at)
		SELECT gen_random_uuid(), 'order', 'bad', 'OrderPaid', CASE WHEN n = 1 THEN clock_timestamp() END FROM generate_series(1, 20000) AS n`)
	b.write(t, order("good", 1))
	cfg, err := pgxpool.ParseConfig(b.URL)
	require.NoError(t, err)
	cfg.MaxConns = 6
	cfg.ConnConfig.Tracer = beforeQuery{"LIMIT $4", func() { takes(t.Context(), 130*time.Millisecond) }}
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(pool.Close)

	b.relayOn(t, pool, &recorder{ordered: true}, quick())

	b.awaitStates(t, "good", "published")
}

// beforeQuery does something before each query with this text.
type beforeQuery struct {
	text string
	do   func()
}

func (q beforeQuery) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	if strings.Contains(data.SQL, q.text) {
		q.do()
	}
	return ctx
}

func (beforeQuery) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

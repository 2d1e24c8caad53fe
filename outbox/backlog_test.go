package outbox_test

import (
	"context"
	"fmt"
	"runtime"
	"runtime/metrics"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
)

// The tests of this file look at the heap of the whole process, so they do not
// run beside others.

// megabyte is what heaps are measured in.
const megabyte = 1 << 20

// liveHeap is how much memory is in use, without garbage.
func liveHeap() int {
	runtime.GC()
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return int(sample[0].Value.Uint64()) //nolint:gosec // memory fits
}

// tally is a publisher that keeps the last version of each aggregate and nothing
// else, so that the memory in use is the relay's.
type tally struct {
	asked   chan struct{} // closed at the first call
	release chan struct{} // the first call waits for it
	goOn    func()        // releases it

	mu     sync.Mutex // guards what follows
	last   map[string]int64
	n      int
	behind int    // bytes published since the heap was looked at
	heap   int    // the most that was seen in use
	wrong  string // the first event out of order
}

func newTally() *tally {
	p := &tally{last: map[string]int64{}, asked: make(chan struct{}), release: make(chan struct{})}
	p.goOn = sync.OnceFunc(func() { close(p.release) })
	return p
}

func (p *tally) KeepsOrder() bool { return true }

func (p *tally) Publish(_ context.Context, msgs []*handler.Message) []error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.n == 0 {
		close(p.asked)
		<-p.release
	}
	for _, msg := range msgs {
		key := string(msg.Key)
		if msg.Version != p.last[key]+1 && p.wrong == "" {
			p.wrong = fmt.Sprintf("aggregate %s: %d after %d", key, msg.Version, p.last[key])
		}
		p.last[key] = msg.Version
		p.behind += len(msg.Payload)
	}
	if p.behind > 10*megabyte { // not each time: to collect garbage takes long
		p.heap, p.behind = max(p.heap, liveHeap()), 0
	}
	p.n += len(msgs)
	return make([]error, len(msgs))
}

// requireAll requires that n events were published, those of each aggregate in
// order.
func (p *tally) requireAll(t *testing.T, n int) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	require.Empty(t, p.wrong, "PROMISE BROKEN: order")
	require.Equal(t, n, p.n)
}

// rowsRead counts the rows of the relay's reads.
type rowsRead struct{ n atomic.Int64 }

func (r *rowsRead) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	return context.WithValue(ctx, isRead{}, strings.Contains(data.SQL, "WHERE o.seq > $1"))
}

func (r *rowsRead) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryEndData) {
	if ctx.Value(isRead{}) == true {
		r.n.Add(data.CommandTag.RowsAffected())
	}
}

// Case O7: the relay comes to a long backlog; the whole of it was loaded before
// the first event went out, and took all memory (modulith#1148). It starts at
// once, and has few events in mind however many wait. Here there are 200,000 of
// 2 KB; `make bench` measures the memory of a process with 5,000,000
// (relay.rss_mb).
func TestRelay_LargeBacklog(t *testing.T) { //nolint:paralleltest // it looks at the heap
	b := setup(t)
	const events, aggregates = 200_000, 1000
	b.exec(t, `INSERT INTO semel.outbox (id, aggregatetype, aggregateid, type, version, payload)
		SELECT gen_random_uuid(), 'order', (n % $2::int)::text, 'OrderPaid', n / $2::int + 1, convert_to(repeat('x', 2000), 'UTF8')
		FROM generate_series(0, $1::int - 1) AS n`, events, aggregates)
	config, err := pgxpool.ParseConfig(b.URL)
	require.NoError(t, err)
	config.MaxConns = 6
	read := &rowsRead{}
	config.ConnConfig.Tracer = read
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	p := newTally()
	before := liveHeap()
	cfg := quick()
	cfg.AttemptTimeout, cfg.Lease, cfg.MaxAge = deadline, 3*deadline, 24*time.Hour
	relay := b.relayOn(t, pool, p, cfg)
	t.Cleanup(p.goOn) // before the relay is stopped

	<-p.asked
	require.Less(t, read.n.Load(), int64(events/20), "read before the first event went out")
	require.Never(t, func() bool { return liveHeap()-before > 40*megabyte }, time.Second, 50*time.Millisecond, "in memory while nothing is done with, of 400 MB")
	p.goOn()

	require.Eventually(t, func() bool { return relay.Stats().Kinds["order"].Sent == events }, 3*deadline, tick)
	p.requireAll(t, events)
	require.Positive(t, p.heap)
	require.Less(t, p.heap-before, 40*megabyte, "of a backlog of 400 MB")
}

// Large payloads are read a few at a time, and no more than may be in memory at
// once, whether a read takes all that it finds or most of that is held back.
// What a read had no room for comes before what is behind it.
func TestRelay_LargePayloads(t *testing.T) { //nolint:paralleltest // it looks at the heap
	for _, heldBack := range []int{0, 3000} {
		t.Run(fmt.Sprintf("heldBack=%d", heldBack), func(t *testing.T) { //nolint:paralleltest // as above
			b := setup(t)
			b.exec(t, `INSERT INTO semel.outbox (id, aggregatetype, aggregateid, type, version, quarantined_at)
				SELECT gen_random_uuid(), 'order', 'held', 'OrderPaid', n, CASE WHEN n = 1 THEN clock_timestamp() END
				FROM generate_series(1, $1::int) AS n`, heldBack)
			const large, small = 160, 5 // so many of 1 MB, and so many others after each
			b.exec(t, `INSERT INTO semel.outbox (id, aggregatetype, aggregateid, type, version, payload)
				SELECT gen_random_uuid(), 'order', CASE k WHEN 0 THEN 'large' ELSE 'small' || k END, 'OrderPaid', n,
					convert_to(repeat('x', CASE k WHEN 0 THEN 1048576 ELSE 10 END), 'UTF8')
				FROM generate_series(1, $1::int) AS n, generate_series(0, $2::int) AS k ORDER BY n, k`, large, small)
			p := newTally()
			before := liveHeap()
			cfg := quick()
			cfg.AttemptTimeout, cfg.Lease, cfg.MaxAge = deadline, 3*deadline, 24*time.Hour
			relay := b.relay(t, p, cfg)
			t.Cleanup(p.goOn)

			<-p.asked
			require.Never(t, func() bool { return liveHeap()-before > 100*megabyte }, 2*time.Second, 50*time.Millisecond, "in memory, of 160 MB")
			p.goOn()

			require.Eventually(t, func() bool { return relay.Stats().Kinds["order"].Sent == large*(1+small) }, deadline, tick)
			p.requireAll(t, large*(1+small))
			require.Less(t, p.heap-before, 100*megabyte)
		})
	}
}

package kafka_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/transports/kafka"
	"github.com/semel-go/semel/transports/transporttest"
)

// Case K2: record 77 was done while 50 still failed, the offset of 77 was
// committed, and 50 was lost at the next restart (franz-go#128, #1055).
func TestSource_CommitsTheLowestInFlight(t *testing.T) {
	t.Parallel()

	eachBroker(t, 1, func(t *testing.T, b *testBundle) {
		b.produce(t, 0, numbered(0, 100)...)
		r := start(t, b.source(), transporttest.SinkConfig{})
		all := r.take(t, 100)
		settle(all[:50])
		b.awaitCommitted(t, 0, 50)

		settle(all[77:78])
		settle(all[51:77])
		settle(all[78:])
		r.cancel() // the last commit is made with all but one settled
		all[50].Returned(errOnceMore)
		require.NoError(t, r.await(t))

		require.EqualValues(t, 50, b.committed(t, 0))
		next := start(t, b.source(), transporttest.SinkConfig{})
		require.Equal(t, "record 0050", string(next.sink.Next(t).Message.Payload))
	})
}

// Offsets are committed while the source runs, not only when it stops.
func TestSource_CommitsNowAndThen(t *testing.T) {
	t.Parallel()

	b := setup(t, 2)
	b.produce(t, 0, "one")
	b.produce(t, 1, "one", "two")
	r := start(t, b.source(), transporttest.SinkConfig{Settle: true})
	b.awaitCommitted(t, 0, 1)
	b.awaitCommitted(t, 1, 2)
	require.Zero(t, r.source.Stats().CommitFailures)
}

// A commit that the group refuses (it rebalances, its coordinator moves) is
// made again.
func TestSource_CommitRefused(t *testing.T) {
	t.Parallel()

	b := setup(t, 1)
	b.produce(t, 0, numbered(0, 10)...)
	b.cluster.Fault(
		kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetCommit}, Err: kerr.RebalanceInProgress, Count: 2},
	)
	r := start(t, b.source(), transporttest.SinkConfig{})
	settle(r.take(t, 10))

	b.awaitCommitted(t, 0, 10)
	stats := r.source.Stats()
	require.EqualValues(t, 2, stats.CommitFailures)
	require.ErrorIs(t, stats.LastError, kerr.RebalanceInProgress)
}

// A commit that is refused at the very end is made again too, or work that is
// finished would come again.
func TestSource_LastCommitRefused(t *testing.T) {
	t.Parallel()

	b := setup(t, 1)
	b.produce(t, 0, numbered(0, 10)...)
	r := start(t, b.source(), transporttest.SinkConfig{})
	all := r.take(t, 10)
	b.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetCommit}, Err: kerr.RebalanceInProgress, Count: 3})
	r.cancel()
	settle(all)
	require.NoError(t, r.await(t))

	require.EqualValues(t, 10, b.committed(t, 0))
}

// Case K15: a commit went unanswered, was repeated, and then landed after all
// and set the offset back (franz-go#689).
func TestSource_CommitLandsLate(t *testing.T) {
	t.Parallel()

	b := setup(t, 1)
	b.produce(t, 0, "one", "two")
	var sent, landed atomic.Bool
	release := make(chan struct{})
	b.cluster.ControlKey(int16(kmsg.OffsetCommit), func(req kmsg.Request) (kmsg.Response, error, bool) {
		if req.(*kmsg.OffsetCommitRequest).Topics[0].Partitions[0].Offset == 0 { // where the group begins
			b.cluster.KeepControl()
			return nil, nil, false
		}
		if !sent.Swap(true) {
			b.cluster.SleepControl(func() { <-release })
			landed.Store(true)
		}
		return nil, nil, false
	})
	source := b.source(kgo.RequestTimeoutOverhead(300*time.Millisecond), kgo.RetryTimeoutFn(func(key int16) time.Duration {
		if key == int16(kmsg.OffsetCommit) {
			return time.Millisecond // the client itself does not try again
		}
		return deadline
	}))
	source.SetDoubt(2 * time.Second)
	r := start(t, source, transporttest.SinkConfig{})
	out := r.take(t, 2)
	out[0].Settled()
	r.awaitStats(t, func(s kafka.SourceStats) bool { return s.CommitFailures == 1 }, "the first commit goes unanswered")
	out[1].Settled()
	b.awaitCommitted(t, 0, 2)

	close(release)
	require.Eventually(t, landed.Load, deadline, tick)
	b.awaitCommitted(t, 0, 1) // the old one landed: the offset went back
	b.awaitCommitted(t, 0, 2) // and does not stay there, although nothing happens any more
}

// Case K15 again, without help from the broker: the offsets sent never go back and never pass what is not settled, whatever the
// order in which work ends, and whatever comes back.
func TestSource_OffsetsNeverGoBack(t *testing.T) {
	t.Parallel()

	const partitions, each = 3, 400
	b := setup(t, partitions)
	for p := range int32(partitions) {
		b.produce(t, p, numbered(0, each)...)
	}
	w := newWitness(b.cluster)
	config := b.config()
	config.WindowRecords = 50
	ctx, cancel := context.WithCancel(t.Context())
	source := b.sourceOf(config)
	sink := &shuffler{witness: w}
	ended := make(chan error)
	go func() { ended <- source.Run(ctx, sink) }()
	require.Eventually(t, func() bool { sink.finishOne(); return w.count() == partitions*each }, deadline, time.Millisecond)
	cancel()
	require.NoError(t, <-ended)

	require.Empty(t, w.faults())
	for p := range int32(partitions) {
		require.EqualValues(t, each, b.committed(t, p))
	}
	require.Zero(t, source.Stats().CommitFailures)
}

// witness sees every commit that is sent, and knows what is settled.
type witness struct {
	mu      sync.Mutex // guards the fields below
	settled map[string]bool
	sent    map[string]int64
	wrong   []string
}

func newWitness(c *kfake.Cluster) *witness {
	w := &witness{settled: map[string]bool{}, sent: map[string]int64{}}
	c.ControlKey(int16(kmsg.OffsetCommit), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		w.see(req.(*kmsg.OffsetCommitRequest))
		return nil, nil, false
	})
	return w
}

func (w *witness) see(req *kmsg.OffsetCommitRequest) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, topic := range req.Topics {
		for _, p := range topic.Partitions {
			name := fmt.Sprint(p.Partition)
			if p.Offset < w.sent[name] {
				w.wrong = append(w.wrong, fmt.Sprintf("partition %s went back from %d to %d", name, w.sent[name], p.Offset))
			}
			for o := w.sent[name]; o < p.Offset; o++ {
				if !w.settled[fmt.Sprintf("%s/%d", name, o)] {
					w.wrong = append(w.wrong, fmt.Sprintf("partition %s passed %d, which is not settled", name, o))
				}
			}
			w.sent[name] = p.Offset
		}
	}
}

func (w *witness) settle(d *handler.Delivery) {
	w.mu.Lock()
	w.settled[fmt.Sprintf("%d/%d", d.Message.Origin.Partition, d.Message.Origin.Offset)] = true
	w.mu.Unlock()
	d.Settled()
}

func (w *witness) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.settled)
}

func (w *witness) faults() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.wrong
}

// shuffler is a sink that ends deliveries in any order, some by returning them.
type shuffler struct {
	witness *witness

	mu  sync.Mutex // guards out
	out []*handler.Delivery
}

func (s *shuffler) Deliver(_ context.Context, d *handler.Delivery) error {
	s.mu.Lock()
	s.out = append(s.out, d)
	many := len(s.out) > 40
	s.mu.Unlock()
	if many {
		s.finishOne()
	}
	return nil
}

func (s *shuffler) finishOne() {
	s.mu.Lock()
	if len(s.out) == 0 {
		s.mu.Unlock()
		return
	}
	i, last := rand.IntN(len(s.out)), len(s.out)-1
	d := s.out[i]
	s.out[i] = s.out[last]
	s.out = s.out[:last]
	s.mu.Unlock()
	if rand.IntN(10) == 0 {
		d.Returned(errOnceMore)
	} else {
		s.witness.settle(d)
	}
}

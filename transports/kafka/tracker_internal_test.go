package kafka

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
)

func newTracker() *tracker { return &tracker{next: unknown} }

func record(offset int64) *kgo.Record {
	return &kgo.Record{Offset: offset, LeaderEpoch: int32(offset / 10), Value: make([]byte, offset%7)}
}

// offset is what the tracker would commit, -1 for nothing.
func (t *tracker) offset() int64 {
	m, ok := t.position()
	if !ok {
		return -1
	}
	return m.offset.Offset
}

func TestTracker_LowestInFlight(t *testing.T) {
	t.Parallel()

	tr := newTracker()
	require.EqualValues(t, -1, tr.offset(), "nothing is known")
	first, second, third := tr.take(record(10)), tr.take(record(11)), tr.take(record(12))
	require.EqualValues(t, 10, tr.offset(), "nothing is settled")

	tr.settle(third)
	require.EqualValues(t, 10, tr.offset(), "the lowest is in flight")
	tr.settle(first)
	require.EqualValues(t, 11, tr.offset())
	tr.settle(second)
	require.EqualValues(t, 13, tr.offset(), "none is in flight: the highest plus one")
}

func TestTracker_Gaps(t *testing.T) {
	t.Parallel()

	tr := newTracker()
	first, second := tr.take(record(3)), tr.take(record(90))
	tr.settle(first)
	require.EqualValues(t, 90, tr.offset(), "4 to 89 are not there")
	tr.settle(second)
	require.EqualValues(t, 91, tr.offset())
}

func TestTracker_Rewound(t *testing.T) {
	t.Parallel()

	tr := newTracker()
	require.True(t, tr.follows(0), "nothing is known yet")
	tr.take(record(7))
	require.False(t, tr.follows(7))
	require.True(t, tr.follows(8))
}

func TestTracker_Epoch(t *testing.T) {
	t.Parallel()

	tr := newTracker()
	last, next := tr.take(record(19)), tr.take(record(20))
	m, ok := tr.position()
	require.True(t, ok)
	require.Equal(t, kgo.EpochOffset{Epoch: 1, Offset: 19}, m.offset, "before any was passed, that of the first")
	tr.settle(last)
	m, _ = tr.position()
	require.Equal(t, kgo.EpochOffset{Epoch: 1, Offset: 20}, m.offset, "the epoch is that of the last record before the offset")
	tr.settle(next)
	m, _ = tr.position()
	require.Equal(t, kgo.EpochOffset{Epoch: 2, Offset: 21}, m.offset)
}

func TestTracker_LateCommit(t *testing.T) {
	t.Parallel()

	tr := newTracker()
	a, b := tr.take(record(1)), tr.take(record(2))
	tr.settle(a)
	early, _ := tr.position()
	tr.settle(b)
	late, _ := tr.position()

	tr.commit(late)
	tr.commit(early)

	require.Zero(t, tr.uncommitted().records, "an answer that comes late takes nothing back")
}

// Whatever is taken and settled in whatever order: nothing unsettled lies
// before the offset, nothing settled lies behind it that could lie before, it
// never goes back, and the window is what lies behind the committed offset.
func TestTracker_AnyOrder(t *testing.T) {
	t.Parallel()

	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		tr := newTracker()
		var next, last int64 = rng.Int64N(100), -1
		taken := map[int64]*entry{}
		var inFlight []*entry
		committed := int64(-1)
		for range 300 {
			switch rng.IntN(5) {
			case 0, 1:
				next += 1 + rng.Int64N(3)*rng.Int64N(20)
				e := tr.take(record(next))
				taken[next] = e
				inFlight = append(inFlight, e)
			case 2, 3:
				if len(inFlight) > 0 {
					i := rng.IntN(len(inFlight))
					tr.settle(inFlight[i])
					inFlight[i] = inFlight[len(inFlight)-1]
					inFlight = inFlight[:len(inFlight)-1]
				}
			case 4:
				if m, ok := tr.position(); ok {
					tr.commit(m)
					committed = m.offset.Offset
				}
			}
			checkTracker(t, tr, taken, next, last, committed)
			last = tr.offset()
		}
	}
}

func checkTracker(t *testing.T, tr *tracker, taken map[int64]*entry, highest, last, committed int64) {
	t.Helper()
	want := highest + 1
	for offset, e := range taken {
		if !e.settled {
			want = min(want, offset)
		}
	}
	var window amount
	for offset, e := range taken {
		if offset >= committed {
			window.records++
			window.bytes += e.bytes
		}
	}
	got := tr.offset()
	if len(taken) == 0 {
		require.EqualValues(t, -1, got)
	} else {
		require.Equal(t, want, got)
	}
	require.GreaterOrEqual(t, got, last, "the offset went back")
	require.Equal(t, window, tr.window())
}

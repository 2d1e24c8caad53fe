package inbox

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// starter records the order in which lanes starts tasks.
type starter struct{ started []*task }

func (s *starter) start(t *task) { s.started = append(s.started, t) }

func testRun() *run { return &run{queued: make(map[*task]struct{})} }

func TestLanes_OneOfAKeyAtATime(t *testing.T) {
	t.Parallel()

	var s starter
	l := newLanes(4, s.start)
	a1, a2, b1, free := &task{key: 1}, &task{key: 1}, &task{key: 2}, &task{}
	for _, task := range []*task{a1, a2, b1, free} {
		l.enter(task)
	}
	require.Equal(t, []*task{a1, b1, free}, s.started)

	l.leave(b1)
	require.Len(t, s.started, 3, "a2 waits for a1, not for a slot")

	l.leave(a1)
	require.Equal(t, a2, s.started[3])
	l.leave(a2)
	l.leave(free)
	require.Empty(t, l.byKey, "a lane lives only while it has tasks")
}

func TestLanes_OldestFirst(t *testing.T) {
	t.Parallel()

	var s starter
	l := newLanes(1, s.start)
	tasks := []*task{{}, {key: 1}, {}, {key: 2}}
	for _, task := range tasks {
		l.enter(task)
	}
	for i, task := range tasks {
		require.Equal(t, tasks[:i+1], s.started)
		l.leave(task)
	}
}

func TestLanes_RestKeepsTheLaneAndFreesTheSlot(t *testing.T) {
	t.Parallel()

	var s starter
	l := newLanes(1, s.start)
	a1, a2, b1 := &task{key: 1}, &task{key: 1}, &task{key: 2}
	l.enter(a1)
	l.enter(a2)
	l.enter(b1)

	l.rest(a1)
	require.Equal(t, []*task{a1, b1}, s.started, "b1 has the slot; a2 still waits for its key")

	l.leave(b1)
	require.Len(t, s.started, 2)
	a1.granted = make(chan struct{}, 1)
	l.rejoin(a1)
	require.Len(t, a1.granted, 1)
	l.leave(a1)
	require.Equal(t, a2, s.started[2])
}

// What waits for room in the inbox lets messages of the inbox pass, those that are
// behind it and those that come, and nothing else of its key.
func TestLanes_Yield(t *testing.T) {
	t.Parallel()

	var s starter
	l := newLanes(1, s.start)
	a1, a2, a3 := &task{key: 1}, &task{key: 1}, &task{key: 1}
	stored1, stored2 := &task{key: 1, stored: &stored{}}, &task{key: 1, stored: &stored{}}
	for _, task := range []*task{a1, a2, stored1} {
		l.enter(task)
	}
	a1.granted = make(chan struct{}, 1)

	l.yield(a1)
	require.Equal(t, []*task{a1, stored1}, s.started, "it was behind")
	l.enter(a3)
	l.rejoin(a1) // its pause is over: it still has to wait
	require.Empty(t, a1.granted)
	l.leave(stored1)
	require.Len(t, a1.granted, 1, "its turn")
	<-a1.granted

	l.yield(a1)
	require.Len(t, s.started, 2, "nothing of the inbox is there")
	l.enter(stored2)
	require.Equal(t, []*task{a1, stored1, stored2}, s.started, "it came")
	require.False(t, l.withdraw(stored2))
	require.True(t, l.withdraw(a1), "a drain takes it out while it is passed")
	l.leave(stored2)
	l.leave(a2)
	l.leave(a3)
	require.Equal(t, []*task{a1, stored1, stored2, a2, a3}, s.started)
	running, waiting := l.counts()
	require.Zero(t, running+waiting)
}

func TestLanes_Withdraw(t *testing.T) {
	t.Parallel()

	var s starter
	l := newLanes(1, s.start)
	a1, a2, a3 := &task{key: 1}, &task{key: 1}, &task{key: 1}
	for _, task := range []*task{a1, a2, a3} {
		l.enter(task)
	}
	require.False(t, l.withdraw(a1), "it runs")
	require.True(t, l.withdraw(a2))
	l.leave(a2) // gone already: nothing happens
	l.leave(a1)
	require.Equal(t, []*task{a1, a3}, s.started)
	running, waiting := l.counts()
	require.Equal(t, 1, running)
	require.Zero(t, waiting)
}

func TestLanes_HoldAndSweep(t *testing.T) {
	t.Parallel()

	var s starter
	l := newLanes(2, s.start)
	r := testRun()
	l.hold(r)
	a1, a2, b1 := &task{key: 1, run: r}, &task{key: 1, run: r}, &task{key: 2, run: r}
	direct := &task{}
	for _, task := range []*task{a1, a2, b1, direct} {
		l.enter(task)
	}
	require.Equal(t, []*task{direct}, s.started, "only the run is held, not Process")

	require.Equal(t, []*task{a1}, l.sweep(r, func(t *task) bool { return t == a1 }))
	l.release(r)
	require.Equal(t, []*task{direct, b1}, s.started)
	l.leave(direct)
	require.Equal(t, []*task{direct, b1, a2}, s.started, "the swept head lets its key go on")
	require.Empty(t, l.sweep(r, func(*task) bool { return true }), "what was started cannot be swept")
}

// Whatever is done to the lanes: never more tasks than slots, never two of one
// key, each key in order, and all that entered comes to an end.
func TestLanes_RandomWalk(t *testing.T) {
	t.Parallel()

	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 1))
		const slots = 3
		var live []*task // started, not left
		position := map[*task]int{}
		last := map[uint64]int{}
		l := newLanes(slots, func(started *task) {
			live = append(live, started)
			if started.key != 0 {
				require.Greater(t, position[started], last[started.key], "seed %d", seed)
				last[started.key] = position[started]
			}
		})
		runs := []*run{testRun(), testRun()}
		entered, swept := 0, 0
		for step := range 2000 {
			running := map[uint64]bool{}
			require.LessOrEqual(t, len(live), slots)
			for _, task := range live {
				require.False(t, task.key != 0 && running[task.key], "seed %d: two of key %d", seed, task.key)
				running[task.key] = true
			}
			switch op := rng.IntN(10); {
			case op < 5 && step < 1500:
				task := &task{run: runs[rng.IntN(2)], key: []uint64{0, 1, 2, 3}[rng.IntN(4)]}
				entered++
				position[task] = entered
				l.enter(task)
			case op == 5:
				l.hold(runs[rng.IntN(2)])
			case op == 6:
				l.release(runs[rng.IntN(2)])
			case op == 7 && step%10 == 0:
				swept += len(l.sweep(runs[rng.IntN(2)], func(*task) bool { return rng.IntN(2) == 0 }))
			case len(live) > 0:
				i := rng.IntN(len(live))
				task := live[i]
				live = append(live[:i:i], live[i+1:]...)
				l.leave(task)
			}
		}
		l.release(runs[0])
		l.release(runs[1])
		for len(live) > 0 {
			task := live[0]
			live = live[1:]
			l.leave(task)
		}
		running, waiting := l.counts()
		require.Zero(t, running+waiting, "seed %d", seed)
		require.Empty(t, l.byKey)
		_ = swept
	}
}

// A quorum queue of RabbitMQ delivers again in the order in which it was given
// back: given back in the order of a map, an outage shuffled every key.
func TestLanes_SweepInOrder(t *testing.T) {
	t.Parallel()

	var s starter
	l := newLanes(1, s.start)
	r := testRun()
	running := &task{key: 1}
	l.enter(running)
	var entered []*task
	for i := range 100 {
		entered = append(entered, &task{key: []uint64{1, 2, 0}[i%3], run: r})
		l.enter(entered[i])
	}

	require.Equal(t, entered, l.sweep(r, func(*task) bool { return true }))
	l.leave(running)
	require.Equal(t, []*task{running}, s.started)
	require.Empty(t, l.byKey)
}

// One that waits for room may be passed by a message of the inbox. What follows it
// goes back after it all the same.
func TestLanes_NothingGoesBackBeforeOneThatYields(t *testing.T) {
	t.Parallel()

	for name, takeBack := range map[string]func(*lanes, *run) []*task{
		"Drained": func(l *lanes, r *run) []*task { return l.freeze(r) },
		"Revoked": func(l *lanes, r *run) []*task { return l.sweep(r, func(*task) bool { return true }) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			var s starter
			l := newLanes(2, s.start)
			r, inboxRun := testRun(), testRun()
			first, next := &task{key: 1, run: r, granted: make(chan struct{}, 1)}, &task{key: 1, run: r}
			stored := &task{key: 1, run: inboxRun, stored: &stored{}}
			l.enter(first)
			<-first.granted
			l.enter(next)
			l.yield(first)
			l.enter(stored)
			require.Equal(t, []*task{stored}, s.started)

			require.Empty(t, takeBack(l, r))
			require.Empty(t, l.end(stored, nil))
			<-first.granted
			require.Equal(t, []*task{next}, l.end(first, func(other *task) bool { return other.key == 1 }))
			require.Empty(t, l.byKey)
		})
	}
}

// What goes back while a gate is closed is not kept for as long as it stays so: a source
// that takes back and brings again would fill the memory.
func TestLanes_NothingGoneWaitsAtAGate(t *testing.T) {
	t.Parallel()

	var s starter
	l, r := newLanes(4, s.start), testRun()
	for _, d := range []*dependency{newDependency(nil, true), newDependency(nil, false)} {
		l.closeGate(d)
		for range 3 {
			first, more := &task{run: r}, &task{run: r}
			l.enter(first)
			if !d.gate {
				l.waitFor(first, d)
			}
			l.enter(more)
			require.True(t, l.withdraw(first))
			l.leave(more)
			require.Nil(t, l.letOne(d, true))
			require.Empty(t, l.atGate)
			require.Empty(t, d.aside)
		}
		l.open(d)
	}
}

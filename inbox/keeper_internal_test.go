package inbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/breaker"
	"github.com/semel-go/semel/handler"
)

// town is a consumer without a database: its messages only call dependencies, and
// time is the bubble's.
type town struct {
	in  *Inbox
	run *run

	mu      sync.Mutex
	calls   []string // that reached a dependency, by message
	handled []string
	down    map[*breaker.Breaker]bool
	poison  string        // this message makes every dependency fail
	hang    chan struct{} // set: calls wait for it, or for their deadline
	needs   func(id string) []*breaker.Breaker
	backlog []string // of a source that is paused
	paused  bool
	pauses  int
}

func newTown(gates []*breaker.Breaker, workers int) *town {
	w := &town{down: map[*breaker.Breaker]bool{}}
	w.in = &Inbox{consumer: "shipping", cfg: Config{
		QuickDelay: 50 * time.Millisecond, QuickMaxDelay: time.Second, OutageMaxDelay: 5 * time.Second,
		QuickAttempts: 3, HandlerTimeout: 30 * time.Second, Logger: slog.New(slog.DiscardHandler), Gates: gates,
	}}
	w.in.lanes = newLanes(workers, func(t *task) { t.run.work(t) })
	w.in.keeper = newKeeper(w.in, gates)
	w.needs = func(string) []*breaker.Breaker { return gates }
	w.run = w.newRun()
	return w
}

func (w *town) newRun() *run {
	r := &run{in: w.in, queued: map[*task]struct{}{}, stopping: make(chan struct{}), hopeless: make(chan struct{}), budget: newBudget(1, 1)}
	r.pausing = &pausing{pauser: w}
	r.work = func(t *task) { go w.handle(t) }
	return r
}

// Pause and Resume make it a source that has its backlog delivered when it goes on.
func (w *town) Pause()  { w.mu.Lock(); w.paused, w.pauses = true, w.pauses+1; w.mu.Unlock() }
func (w *town) Resume() { w.mu.Lock(); w.paused = false; w.mu.Unlock(); go w.deliver() }

func (w *town) deliver() {
	for {
		w.mu.Lock()
		if w.paused || len(w.backlog) == 0 {
			w.mu.Unlock()
			return
		}
		id := w.backlog[0]
		w.backlog = w.backlog[1:]
		w.mu.Unlock()
		w.enter(id)
		time.Sleep(time.Microsecond) // of the bubble
	}
}

func (w *town) enter(ids ...string) {
	for _, id := range ids {
		w.in.lanes.enter(&task{msg: &handler.Message{ID: id}, run: w.run})
	}
}

// handle is the life of a message.
func (w *town) handle(t *task) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	defer w.in.lanes.leave(t)
	for {
		err := w.callAll(ctx, t.msg.ID)
		switch b := shutBy(err); {
		case err == nil:
			w.mu.Lock()
			w.handled = append(w.handled, t.msg.ID)
			w.mu.Unlock()
			return
		case b != nil:
			if w.in.waitForDependency(ctx, t, b, err) != nil {
				return
			}
		default:
			if w.in.pause(ctx, t, 10*time.Millisecond, nil) != nil {
				return
			}
		}
	}
}

var errDown = errors.New("503")

func (w *town) callAll(ctx context.Context, id string) error {
	for _, b := range w.needs(id) {
		err := b.Do(ctx, func(ctx context.Context) error {
			w.mu.Lock()
			w.calls = append(w.calls, id)
			down, hang := w.down[b] || id == w.poison, w.hang
			w.mu.Unlock()
			if hang != nil {
				select {
				case <-hang:
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			if down {
				return errDown
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *town) set(change func()) { w.mu.Lock(); defer w.mu.Unlock(); change() }

func (w *town) counts() (calls, handled int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.calls), len(w.handled)
}

// tried are the calls from the n-th on.
func (w *town) tried(n int) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.calls[n:])
}

func (w *town) isPaused() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.paused
}

func (w *town) pausesSoFar() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pauses
}

// open opens a breaker as its other users would.
func open(b *breaker.Breaker) {
	for b.State() == breaker.Closed {
		_ = b.Do(context.Background(), func(context.Context) error { return errDown })
	}
}

func named(from, n int) (ids []string) {
	for i := range n {
		ids = append(ids, fmt.Sprint("evt_", from+i))
	}
	return ids
}

func (w *town) requireOnce(t *testing.T, n int) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	require.Len(t, w.handled, n)
	slices.Sort(w.handled)
	require.Len(t, slices.Compact(w.handled), n)
	running, waiting := w.in.lanes.counts()
	require.Zero(t, running+waiting)
	require.False(t, w.paused)
}

// Case P4: a dependency is away for ten minutes. Nothing is started but single
// trials, the source is paused, and all goes on when it is back (watermill
// CircuitBreaker; gobreaker#30).
func TestKeeper_TenMinutes(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		const n = 10_000
		b := breaker.New("invoices", breaker.Config{})
		w := newTown([]*breaker.Breaker{b}, 8)
		w.down[b] = true
		w.in.keeper.enter(t.Context(), w.run)
		w.enter(named(0, n)...)
		synctest.Wait()
		require.True(t, w.isPaused())
		require.Equal(t, []string{"invoices"}, w.in.keeper.away())
		calls, _ := w.counts()
		require.LessOrEqual(t, calls, 8+3, "what ran as it opened")

		time.Sleep(10 * time.Minute)
		calls, handled := w.counts()
		require.Zero(t, handled)
		require.Less(t, calls, 60, "trials of 2 to 30 s")
		require.Greater(t, calls, 20, "it is tried all the time")
		require.True(t, w.isPaused())
		require.Equal(t, 1, w.pausesSoFar(), "there was something at hand to try with")
		tried := map[string]bool{}
		for _, id := range w.tried(8) {
			tried[id] = true
		}
		require.Greater(t, len(tried), 15, "by another one each time")
		require.Zero(t, w.in.counters.failedAttempts.Load())

		w.set(func() { w.down[b] = false })
		time.Sleep(time.Minute)
		synctest.Wait()
		w.requireOnce(t, n)
		w.in.keeper.leave(w.run)
	})
}

// A message that always makes the dependency fail is not the only one that tries,
// also where it was the only one at hand: the source looks for others.
func TestKeeper_PoisonTries(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("invoices", breaker.Config{})
		w := newTown([]*breaker.Breaker{b}, 2)
		w.poison = "poison"
		w.in.keeper.enter(t.Context(), w.run)
		w.enter("poison")
		for b.State() == breaker.Closed {
			time.Sleep(time.Millisecond)
		}
		synctest.Wait()
		require.True(t, w.isPaused())
		w.set(func() { w.backlog = named(0, 50) })

		time.Sleep(10 * time.Second)
		synctest.Wait()
		_, handled := w.counts()
		require.Equal(t, 50, handled, "tried by %v", w.tried(0))
		w.set(func() { w.poison = "" })
		time.Sleep(time.Minute)
		synctest.Wait()
		w.requireOnce(t, 51)
		w.in.keeper.leave(w.run)
	})
}

// Messages that need no call must not stand still because a dependency is away that
// nothing tries: they go one after the other, at once.
func TestKeeper_NothingTouchesIt(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("invoices", breaker.Config{})
		w := newTown([]*breaker.Breaker{b}, 8)
		w.needs = func(string) []*breaker.Breaker { return nil }
		open(b)
		w.in.keeper.enter(t.Context(), w.run)
		w.enter(named(0, 500)...)
		w.set(func() { w.backlog = named(500, 500) })
		time.Sleep(time.Second)
		_, handled := w.counts()
		require.Zero(t, handled, "it may not be tried yet")

		time.Sleep(4 * time.Second)
		synctest.Wait()
		_, handled = w.counts()
		require.Equal(t, 1000, handled)
		require.Equal(t, breaker.Open, b.State())
		require.False(t, w.isPaused(), "the source looks for one that tries")
		w.in.keeper.leave(w.run)
		w.requireOnce(t, 1000)
	})
}

// No message is at hand when a dependency goes away that others use too: the source
// goes on until one arrives, which tries.
func TestKeeper_NoneAtHand(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("invoices", breaker.Config{})
		w := newTown([]*breaker.Breaker{b}, 8)
		w.in.keeper.enter(t.Context(), w.run)
		synctest.Wait()
		open(b)
		synctest.Wait()
		require.True(t, w.isPaused())

		time.Sleep(time.Minute)
		require.False(t, w.isPaused())
		w.set(func() { w.down[b] = true })
		w.enter(named(0, 1)...)
		synctest.Wait()
		calls, _ := w.counts()
		require.Equal(t, 1, calls)
		require.True(t, w.isPaused(), "it has failed")

		w.set(func() { w.down[b] = false })
		time.Sleep(time.Minute)
		w.requireOnce(t, 1)
		w.in.keeper.leave(w.run)
	})
}

// A trial hangs. The breaker gives it up, and another message tries.
func TestKeeper_TrialHangs(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("invoices", breaker.Config{TrialTimeout: 20 * time.Second})
		w := newTown([]*breaker.Breaker{b}, 8)
		open(b)
		w.hang = make(chan struct{})
		w.in.keeper.enter(t.Context(), w.run)
		w.enter(named(0, 100)...)
		time.Sleep(10 * time.Second)
		calls, _ := w.counts()
		require.Equal(t, 1, calls)

		time.Sleep(50 * time.Second)
		calls, _ = w.counts()
		require.Greater(t, calls, 1, "another one")
		require.Less(t, calls, 5)
		w.set(func() {
			close(w.hang)
			w.hang = nil
		})
		time.Sleep(time.Minute)
		synctest.Wait()
		w.requireOnce(t, 100)
		w.in.keeper.leave(w.run)
	})
}

// Two dependencies are away, the second one for longer. What tries the one meets the
// other; all goes on when both are back.
func TestKeeper_TwoGates(t *testing.T) {
	t.Parallel()

	for _, reversed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			first, second := breaker.New("invoices", breaker.Config{}), breaker.New("labels", breaker.Config{})
			gates := []*breaker.Breaker{first, second}
			w := newTown(gates, 8)
			if reversed {
				w.needs = func(string) []*breaker.Breaker { return []*breaker.Breaker{second, first} }
			}
			open(first)
			open(second)
			w.down[first], w.down[second] = true, true
			w.in.keeper.enter(t.Context(), w.run)
			w.enter(named(0, 100)...)
			time.Sleep(3 * time.Minute)
			require.True(t, w.isPaused())
			w.set(func() { w.down[first] = false })
			time.Sleep(3 * time.Minute)
			_, handled := w.counts()
			require.Zero(t, handled)
			require.Contains(t, w.in.keeper.away(), "labels")
			calls, _ := w.counts()
			require.Less(t, calls, 100)

			w.set(func() { w.down[second] = false })
			time.Sleep(2 * time.Minute)
			synctest.Wait()
			w.requireOnce(t, 100)
			require.Empty(t, w.in.keeper.away())
			w.in.keeper.leave(w.run)
		})
	}
}

// Of a dependency that is no gate only those wait that met it, one of them tries at a
// time, and nobody looks after it when none waits.
func TestKeeper_NoGate(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("labels", breaker.Config{})
		w := newTown(nil, 8)
		w.needs = func(id string) []*breaker.Breaker {
			if id[len(id)-1] == '0' {
				return []*breaker.Breaker{b}
			}
			return nil
		}
		w.down[b] = true
		w.in.keeper.enter(t.Context(), w.run)
		w.enter(named(0, 1000)...)
		time.Sleep(10 * time.Minute)
		calls, handled := w.counts()
		require.Equal(t, 900, handled)
		require.Less(t, calls, 60)
		require.Zero(t, w.pausesSoFar())
		running, waiting := w.in.lanes.counts()
		require.Zero(t, running)
		require.Equal(t, 100, waiting)

		w.set(func() { w.down[b] = false })
		time.Sleep(time.Minute)
		synctest.Wait()
		w.requireOnce(t, 1000)
		require.False(t, w.in.keeper.of(b).tended)
		w.in.keeper.leave(w.run)
	})
}

// While a gate is closed, what waits for another dependency does not try that either.
func TestKeeper_GateAndAnother(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		gate, other := breaker.New("invoices", breaker.Config{}), breaker.New("labels", breaker.Config{})
		w := newTown([]*breaker.Breaker{gate}, 8)
		w.needs = func(string) []*breaker.Breaker { return []*breaker.Breaker{other} }
		w.down[other] = true
		w.in.keeper.enter(t.Context(), w.run)
		w.enter(named(0, 20)...)
		time.Sleep(time.Second)
		open(gate)
		gate.HoldUntil(time.Now().Add(5 * time.Minute))
		synctest.Wait()
		before, _ := w.counts()
		w.set(func() { w.down[other] = false })
		time.Sleep(4 * time.Minute)
		after, handled := w.counts()
		require.Equal(t, before, after)
		require.Zero(t, handled)

		time.Sleep(10 * time.Minute) // they are let go to try the gate, which they do not touch
		synctest.Wait()
		w.in.keeper.leave(w.run)
		w.requireOnce(t, 20)
	})
}

// The runs of a consumer share its trials: one message of all of them tries. When one
// run drains, what it has waiting goes back, and the other one goes on.
func TestKeeper_TwoRuns(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("invoices", breaker.Config{})
		w := newTown([]*breaker.Breaker{b}, 8)
		w.down[b] = true
		open(b)
		other := w.newRun()
		w.in.keeper.enter(t.Context(), w.run)
		w.in.keeper.enter(t.Context(), other)
		for _, id := range named(0, 100) {
			w.in.lanes.enter(&task{msg: &handler.Message{ID: id}, run: w.run})
			other.drained.Add(1)
			w.in.lanes.enter(&task{msg: &handler.Message{ID: "other " + id}, run: other, delivery: &handler.Delivery{Returned: func(error) {}}})
		}
		time.Sleep(2*time.Second + 10*time.Millisecond)
		calls, _ := w.counts()
		require.Equal(t, 1, calls, "one trial for both")
		time.Sleep(5 * time.Minute)
		of := map[bool]int{}
		for _, id := range w.tried(0) {
			of[id[0] == 'o']++
		}
		require.NotZero(t, of[true])
		require.NotZero(t, of[false])

		close(other.stopping) // it drains
		other.giveUp()
		w.in.lanes.freeze(other)
		synctest.Wait()
		w.in.keeper.leave(other)
		w.set(func() { w.down[b] = false })
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		w.requireOnce(t, 100)
		w.in.keeper.leave(w.run)
	})
}

// A gate that is open costs a message nothing: a run is told of changes, and a caller
// looks without allocating.
func TestKeeper_OpenGateCostsNothing(t *testing.T) {
	b := breaker.New("invoices", breaker.Config{})
	w := newTown([]*breaker.Breaker{b}, 8)
	var err error
	require.Zero(t, testing.AllocsPerRun(1000, func() { err = w.in.refused() }))
	require.NoError(t, err)
}

package inbox

import (
	"cmp"
	"slices"
	"sync"
)

// lanes decides which task runs next. A lane is one key's queue, alive while
// it has tasks: its head may run, the others wait behind it. A task without a
// key is in no lane. Tasks that may run get one of a fixed number of slots,
// the oldest first.
//
// A task moves: behind (its key is busy) → ready (waits for a slot) → running
// (has one) → gone; or running → resting (keeps its lane, holds no slot: the
// pause before the next attempt) → ready. One that rests because the inbox is full
// yields: messages of the inbox pass it in its lane. What must not run though it is
// ready is set aside, see aside.go.
type lanes struct {
	start func(*task) // runs a task that got its slot and has no goroutine yet; must not block

	mu    sync.Mutex // guards all below, and state and aside of tasks and runs
	slots int
	free  int
	total int    // tasks not gone
	last  uint64 // number of the task that entered last
	byKey map[uint64]lane
	ready fifo

	shut   []*dependency // gates that are closed
	atGate []*task       // ready, but a gate is closed
}

// lane is the queue of one key, linked by task.behind.
type lane struct{ head, tail *task }

type taskState int8

const (
	stateBehind taskState = iota
	stateReady
	stateAside
	stateRunning
	stateResting
	stateGone
)

func newLanes(slots int, start func(*task)) *lanes {
	return &lanes{start: start, slots: slots, free: slots, byKey: make(map[uint64]lane)}
}

// enter puts a new task at the end of its lane.
func (l *lanes) enter(t *task) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.total++
	l.last++
	t.number = l.last
	if t.run != nil {
		t.run.queued[t] = struct{}{}
	}
	if t.key != 0 {
		if q, busy := l.byKey[t.key]; busy {
			if t.stored != nil && q.head.yields && q.head.state == stateResting {
				l.pass(t, q.head)
				l.dispatch()
				return
			}
			q.tail.behind = t
			l.byKey[t.key] = lane{q.head, t}
			t.state = stateBehind
			return
		}
		l.byKey[t.key] = lane{t, t}
	}
	l.makeReady(t)
	l.dispatch()
}

// enterAtOnce does what enter does if the task gets a slot at once: nobody is
// before it. False: nothing was done. It spares most tasks their channel.
func (l *lanes) enterAtOnce(t *task) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, busy := l.byKey[t.key]; busy || l.free == 0 || !l.ready.empty() {
		return false
	}
	if t.key != 0 {
		l.byKey[t.key] = lane{t, t}
	}
	l.total++
	l.last++
	t.number = l.last
	l.free--
	t.state = stateRunning
	return true
}

// rest gives the task's slot back; it keeps its place at the head of its lane.
func (l *lanes) rest(t *task) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t.state, t.yields = stateResting, false
	l.free++
	l.trialEnds(t)
	l.dispatch()
}

// yield gives back the slot of a task that waits for room in the inbox. One message
// of the inbox may pass it in its lane and make room; then it has its turn again.
func (l *lanes) yield(t *task) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t.state, t.yields = stateResting, true
	l.free++
	l.trialEnds(t)
	for before := t; before.behind != nil; before = before.behind {
		if next := before.behind; next.stored != nil {
			before.behind = next.behind
			if q := l.byKey[t.key]; q.tail == next {
				l.byKey[t.key] = lane{q.head, before}
			}
			l.pass(next, t)
			break
		}
	}
	l.dispatch()
}

// pass puts t in front of the head of its lane, which yields.
func (l *lanes) pass(t, head *task) {
	t.behind = head
	l.byKey[t.key] = lane{t, l.byKey[t.key].tail}
	head.state = stateBehind
	l.makeReady(t)
}

// rejoin lets a resting task wait for a slot again. One that was passed meanwhile
// has its turn when that is gone.
func (l *lanes) rejoin(t *task) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t.state == stateResting {
		l.makeReady(t)
		l.dispatch()
	}
}

// leave ends a task; the next of its key may run. A task that is gone already
// is left alone.
func (l *lanes) leave(t *task) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch t.state {
	case stateGone:
		return
	case stateRunning:
		l.free++
	}
	l.drop(t)
	l.dispatch()
}

// withdraw takes a task out that has no slot. False: it has got one, or is gone.
func (l *lanes) withdraw(t *task) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t.state == stateRunning || t.state == stateGone {
		return false
	}
	l.drop(t)
	l.dispatch()
	return true
}

// end ends a task of a run as leave does, and takes out in the same moment what
// must not start after it: what match says (nil: nothing), and what came too
// late for a run that drains.
func (l *lanes) end(t *task, match func(*task) bool) (swept []*task) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t.state == stateRunning {
		l.free++
	}
	if t.state != stateGone {
		l.drop(t)
	}
	if match != nil {
		swept = l.takeOut(t.run, match)
	}
	swept = append(swept, l.takeOutLate(t.run)...)
	l.dispatch()
	return swept
}

// sweep takes out the tasks of r that were never started and for which match
// is true, and returns them as they entered: a source may give them back in
// that order. Those behind one that waits for its next attempt, and is about
// to go back too, follow it when it ends.
func (l *lanes) sweep(r *run, match func(*task) bool) []*task {
	l.mu.Lock()
	defer l.mu.Unlock()
	swept := l.takeOut(r, match)
	l.dispatch()
	return swept
}

func (l *lanes) takeOut(r *run, match func(*task) bool) []*task {
	var swept []*task
	for t := range r.queued {
		if match(t) && !l.followsOneThatWaits(t, match) {
			swept = append(swept, t)
		}
	}
	l.dropInOrder(swept)
	return swept
}

// takeOutLate takes out what came too late for a run that drains. What waits
// behind a message of its key that may still end well goes back after it: else
// another consumer could handle it first.
func (l *lanes) takeOutLate(r *run) []*task {
	if !r.frozen {
		return nil
	}
	late := func(t *task) bool { return t.neverStarted() && r.tooLate(t) }
	var swept []*task
	for t := range r.queued {
		if !late(t) {
			continue
		}
		if t.key != 0 {
			if first := l.firstOfItsRun(t); !late(first) {
				continue
			}
		}
		swept = append(swept, t)
	}
	l.dropInOrder(swept)
	return swept
}

// dropInOrder sorts tasks as they entered, and drops them.
func (l *lanes) dropInOrder(tasks []*task) {
	slices.SortFunc(tasks, func(a, b *task) int { return cmp.Compare(a.number, b.number) })
	for _, t := range tasks {
		l.drop(t)
	}
}

// followsOneThatWaits reports whether the first of t's run in its lane was started,
// does not run now, and matches.
func (l *lanes) followsOneThatWaits(t *task, match func(*task) bool) bool {
	if t.key == 0 {
		return false
	}
	first := l.firstOfItsRun(t)
	return first.state != stateRunning && !first.neverStarted() && match(first)
}

// firstOfItsRun is the first task of t's run in t's lane. It may be behind one of
// another run: it yields to that, or came after it.
func (l *lanes) firstOfItsRun(t *task) *task {
	first := l.byKey[t.key].head
	for first.run != t.run {
		first = first.behind
	}
	return first
}

// freeze begins the drain of r: of the tasks that were never started only those
// may still be that came before one that was. When they are done too, what is
// settled has no holes, and a source that acknowledges a prefix (Kafka) need
// not deliver anything settled again. The others are taken out and returned.
func (l *lanes) freeze(r *run) []*task {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !r.frozen { // else it was given up in the same moment
		r.frozen, r.lastToStart = true, r.lastStarted
	}
	return l.sweepLate(r)
}

// thaw gives up on what freeze left to be started, and returns it.
func (l *lanes) thaw(r *run) []*task {
	l.mu.Lock()
	defer l.mu.Unlock()
	r.frozen, r.lastToStart = true, 0
	return l.sweepLate(r)
}

// refreeze takes out what entered after freeze.
func (l *lanes) refreeze(r *run) []*task {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sweepLate(r)
}

func (l *lanes) sweepLate(r *run) []*task {
	swept := l.takeOutLate(r)
	l.dispatch()
	return swept
}

// counts returns how many tasks run and how many wait for whatever reason.
func (l *lanes) counts() (running, waiting int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	running = l.slots - l.free
	return running, l.total - running
}

func (l *lanes) makeReady(t *task) {
	t.state = stateReady
	l.ready.push(t)
}

// drop ends t wherever it stands. Its entry in ready or aside, if it has one,
// is passed over later.
func (l *lanes) drop(t *task) {
	t.state = stateGone
	l.total--
	l.trialEnds(t)
	if t.run != nil {
		delete(t.run.queued, t)
	}
	if t.key == 0 {
		return
	}
	switch q := l.byKey[t.key]; t {
	case q.head:
		if t.behind == nil {
			delete(l.byKey, t.key)
			return
		}
		l.byKey[t.key] = lane{t.behind, q.tail}
		l.makeReady(t.behind)
	default: // behind somebody
		before := q.head
		for before.behind != t {
			before = before.behind
		}
		before.behind = t.behind
		if q.tail == t {
			l.byKey[t.key] = lane{q.head, before}
		}
	}
	t.behind = nil
}

// dispatch hands free slots to ready tasks.
func (l *lanes) dispatch() {
	for l.free > 0 && !l.ready.empty() {
		t := l.ready.pop()
		switch {
		case t.state != stateReady: // dropped meanwhile
			continue
		case l.setAside(t):
			continue
		}
		l.free--
		t.state = stateRunning
		if t.run != nil {
			delete(t.run.queued, t)
			t.run.lastStarted = max(t.run.lastStarted, t.number)
		}
		if t.granted != nil {
			t.granted <- struct{}{} // never blocks: one place, taken once per grant
		} else {
			l.start(t)
		}
	}
}

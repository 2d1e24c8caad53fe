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
// pause before the next attempt) → ready. A ready task of a run that is held
// is set aside until the run is released.
type lanes struct {
	start func(*task) // runs a task that got its slot and has no goroutine yet; must not block

	mu    sync.Mutex // guards all below, and state and aside of tasks and runs
	slots int
	free  int
	total int    // tasks not gone
	last  uint64 // number of the task that entered last
	byKey map[string][]*task
	ready []*task
}

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
	return &lanes{start: start, slots: slots, free: slots, byKey: make(map[string][]*task)}
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
	if t.key != "" {
		lane := l.byKey[t.key]
		l.byKey[t.key] = append(lane, t)
		if len(lane) > 0 {
			t.state = stateBehind
			return
		}
	}
	l.makeReady(t)
	l.dispatch()
}

// rest gives the task's slot back; it keeps its place at the head of its lane.
func (l *lanes) rest(t *task) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t.state = stateResting
	l.free++
	l.dispatch()
}

// rejoin lets a resting task wait for a slot again.
func (l *lanes) rejoin(t *task) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.makeReady(t)
	l.dispatch()
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
		if t.key != "" {
			if head := l.byKey[t.key][0]; head.run == r && !late(head) {
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

// followsOneThatWaits reports whether the head of t's lane was started, does
// not run now, and matches.
func (l *lanes) followsOneThatWaits(t *task, match func(*task) bool) bool {
	if t.key == "" {
		return false
	}
	head := l.byKey[t.key][0]
	if head.run != t.run || head.state == stateRunning {
		return false
	}
	return !head.neverStarted() && match(head)
}

// freeze begins the drain of r: of the tasks that were never started only those
// may still be that came before one that was. When they are done too, what is
// settled has no holes, and a source that acknowledges a prefix (Kafka) need
// not deliver anything settled again. The others are taken out and returned.
func (l *lanes) freeze(r *run) []*task {
	l.mu.Lock()
	defer l.mu.Unlock()
	r.frozen, r.lastToStart = true, r.lastStarted
	return l.sweepLate(r)
}

// thaw gives up on what freeze left to be started, and returns it.
func (l *lanes) thaw(r *run) []*task {
	l.mu.Lock()
	defer l.mu.Unlock()
	r.lastToStart = 0
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

// hold sets the ready tasks of r aside until release.
func (l *lanes) hold(r *run) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r.held = true
}

// release lets the tasks of r run again.
func (l *lanes) release(r *run) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r.held = false
	for _, t := range r.aside {
		if t.state == stateAside {
			l.makeReady(t)
		}
	}
	r.aside = nil
	l.dispatch()
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
	l.ready = append(l.ready, t)
}

// drop ends t wherever it stands. Its entry in ready or aside, if it has one,
// is passed over later.
func (l *lanes) drop(t *task) {
	t.state = stateGone
	l.total--
	if t.run != nil {
		delete(t.run.queued, t)
	}
	if t.key == "" {
		return
	}
	lane := l.byKey[t.key]
	switch head := lane[0] == t; {
	case len(lane) == 1:
		delete(l.byKey, t.key)
	case head:
		lane[0] = nil
		l.byKey[t.key] = lane[1:]
		l.makeReady(lane[1])
	default:
		i := slices.Index(lane, t)
		l.byKey[t.key] = slices.Delete(lane, i, i+1)
	}
}

// dispatch hands free slots to ready tasks.
func (l *lanes) dispatch() {
	for l.free > 0 && len(l.ready) > 0 {
		t := l.ready[0]
		l.ready[0] = nil
		l.ready = l.ready[1:]
		switch {
		case t.state != stateReady: // dropped meanwhile
			continue
		case t.run != nil && (t.run.held || t.neverStarted() && t.run.tooLate(t)):
			t.state = stateAside
			t.run.aside = append(t.run.aside, t)
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

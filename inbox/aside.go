package inbox

import "slices"

// Tasks that could run and must not are set aside: the database of their run is away,
// they met a dependency that is, or the consumer cannot do without one that is. One
// of them may be let go all the same, to try the dependency.

// setAside keeps a ready task from running if something says so. It is called with
// mu held, as the others here that do not take it.
func (l *lanes) setAside(t *task) bool {
	switch {
	case t.run == nil: // its caller is told instead
		return false
	case t.run.held || t.neverStarted() && t.run.tooLate(t):
		t.run.aside = append(t.run.aside, t)
	case len(l.shut) > 0 && (t.probe == nil || !t.probe.of.gate):
		l.queue(t, l.shut[0])
	default:
		return false
	}
	t.state = stateAside
	return true
}

// queue has t wait for d, and those know that look for one to try it with.
func (l *lanes) queue(t *task, d *dependency) {
	if !d.gate {
		d.aside = append(d.aside, t)
		d.wake()
		return
	}
	l.atGate = append(l.atGate, t)
	for _, gate := range l.shut {
		gate.wake()
	}
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
	l.putBack(&r.aside)
	l.dispatch()
}

// waitFor takes the slot of a task that met d, which is away: it keeps its lane, and
// waits until it is let go. First reports that nobody looks after d yet: the caller
// must see to that.
func (l *lanes) waitFor(t *task, d *dependency) (first bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.free++
	l.trialEnds(t)
	l.close(d)
	t.state = stateAside
	l.queue(t, d)
	first, d.tended = !d.gate && !d.tended, true
	l.dispatch()
	return first
}

// closeGate sets all aside that becomes ready, until open.
func (l *lanes) closeGate(d *dependency) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.close(d)
}

func (l *lanes) close(d *dependency) {
	if d.gate && !d.shut {
		l.shut = append(l.shut, d)
	}
	d.shut = true
}

// anyShut reports whether nothing is started because of a dependency.
func (l *lanes) anyShut() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.shut) > 0
}

// open lets all go that waited for d.
func (l *lanes) open(d *dependency) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !d.shut {
		return
	}
	d.shut, d.last = false, nil
	l.shut = slices.DeleteFunc(l.shut, func(gate *dependency) bool { return gate == d })
	switch {
	case !d.gate:
		l.putBack(&d.aside)
	case len(l.shut) == 0:
		l.putBack(&l.atGate)
	}
	l.dispatch()
}

// forsake reports that nobody waits for d, and that nobody needs to look after it.
func (l *lanes) forsake(d *dependency) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	d.tended = slices.ContainsFunc(d.aside, (*task).isAside)
	return !d.tended
}

// letOne lets one task go to try d, that which has waited longest. Only if again it
// may be the one that tried it last. Nil: there is none. What is gone waits no more.
func (l *lanes) letOne(d *dependency, again bool) *probe {
	l.mu.Lock()
	defer l.mu.Unlock()
	waiting := &l.atGate
	if !d.gate {
		waiting = &d.aside
	}
	*waiting = slices.DeleteFunc(*waiting, func(t *task) bool { return !t.isAside() })
	next := slices.IndexFunc(*waiting, func(t *task) bool { return again || t != d.last })
	if next < 0 {
		return nil
	}
	t := (*waiting)[next]
	*waiting = slices.Delete(*waiting, next, next+1)
	l.trialEnds(t) // of another dependency
	t.probe = &probe{of: d, task: t, ended: make(chan struct{})}
	d.last = t
	l.makeReady(t)
	l.dispatch()
	return t.probe
}

// trialEnds notes that a task that was let go has given its slot back, or is gone.
func (l *lanes) trialEnds(t *task) {
	if t.probe != nil {
		close(t.probe.ended)
		t.probe = nil
	}
}

// isGone reports whether a task has ended.
func (l *lanes) isGone(t *task) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return t.state == stateGone
}

// putBack makes those of a list ready that still wait in it.
func (l *lanes) putBack(list *[]*task) {
	for _, t := range *list {
		if t.isAside() {
			l.makeReady(t)
		}
	}
	*list = nil
}

func (t *task) isAside() bool { return t.state == stateAside }

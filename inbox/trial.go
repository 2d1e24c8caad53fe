package inbox

import (
	"time"

	"github.com/semel-go/semel/internal/jitter"
)

// trials are the messages that try a dependency, one after the other.
type trials struct {
	keeper  *keeper
	of      *dependency
	stop    <-chan struct{}
	looking bool // for one to try with
}

// run returns when the breaker is closed, when nobody waits any more for what is no
// gate, and when stop is closed.
func (t *trials) run() {
	defer t.look(false)
	cfg, b := &t.keeper.in.cfg, t.of.breaker
	pauses := jitter.New(cfg.QuickDelay, cfg.OutageMaxDelay)
	for {
		changed := b.Changed()
		if !t.of.isAway() {
			return
		}
		// Not to be tried yet, or somebody tries: a look now and then costs nothing.
		if wait := min(b.RetryIn(), cfg.OutageMaxDelay); wait > 0 {
			t.look(false)
			pauses.Reset()
			if !t.rested(wait, changed) {
				return
			}
			continue
		}
		p, goOn := t.next(changed)
		switch {
		case !goOn:
			return
		case p == nil:
			continue
		}
		select {
		case <-t.stop:
			return
		case <-changed:
			continue
		case <-p.ended:
		}
		// It ended, and has not touched the breaker, as a duplicate: the next one, at
		// once. One that is to run again could be the next one for ever.
		if t.keeper.in.lanes.isGone(p.task) {
			pauses.Reset()
		} else if !t.rested(pauses.NextBackOff(), changed) {
			return
		}
	}
}

// next lets a message go to try the dependency. If there is none at hand, or only the
// one that tried it last, the sources of a gate look for another, for a while. Nil: the
// breaker has changed meanwhile, or there is nothing to go on with.
func (t *trials) next(changed <-chan struct{}) (p *probe, goOn bool) {
	lanes := t.keeper.in.lanes
	if !t.of.gate {
		p = lanes.letOne(t.of, true)
		return p, p != nil
	}
	patience := time.NewTimer(t.keeper.in.cfg.QuickMaxDelay)
	defer patience.Stop()
	for again := false; ; {
		if p := lanes.letOne(t.of, again); p != nil {
			return p, true
		}
		t.look(true)
		select {
		case <-t.of.woken:
		case <-patience.C:
			again = true
		case <-changed:
			return nil, true
		case <-t.stop:
			return nil, false
		}
	}
}

// look has the sources go on so that a message arrives, or not.
func (t *trials) look(on bool) {
	if on == t.looking {
		return
	}
	t.looking = on
	t.keeper.steer(func() {
		if on {
			t.keeper.looking++
		} else {
			t.keeper.looking--
		}
	})
}

// rested waits for d, or until changed. False: stop was closed.
func (t *trials) rested(d time.Duration, changed <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-changed:
	case <-t.stop:
		return false
	}
	return true
}

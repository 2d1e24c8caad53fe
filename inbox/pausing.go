package inbox

import (
	"sync"

	"github.com/semel-go/semel/handler"
)

// pausing has a source stop taking while there is a cause for that.
type pausing struct {
	pauser  handler.Pauser // nil: the source cannot
	recalls bool           // what it handed out comes back then

	mu     sync.Mutex // guards causes; the source is told while it is held
	causes pauseCause
}

// pauseCause is why a source is paused: a set of bits.
type pauseCause uint8

const (
	databaseAway pauseCause = 1 << iota // or a person is needed
	gateClosed
)

func newPausing(src handler.Source) *pausing {
	p := &pausing{}
	p.pauser, _ = src.(handler.Pauser)
	if r, ok := src.(handler.RecallingPauser); ok {
		p.recalls = r.PauseRecalls()
	}
	return p
}

// keeps reports whether what was started stays here though its source has taken it
// back: it was paused because of a gate, and has something at hand to try with so.
func (p *pausing) keeps() bool {
	if !p.recalls {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.causes&gateClosed != 0
}

// set notes whether there is a cause.
func (p *pausing) set(cause pauseCause, there bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.causes
	if p.causes &^= cause; there {
		p.causes |= cause
	}
	switch {
	case p.pauser == nil || (before == 0) == (p.causes == 0):
	case p.causes != 0:
		p.pauser.Pause()
	default:
		p.pauser.Resume()
	}
}

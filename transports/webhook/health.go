package webhook

import (
	"sync"
	"time"
)

const (
	// manyFailed is how many different messages fail in a row, with none between that
	// was answered, when it is the endpoint and not the messages. One that fails every
	// time while others are answered never looks like an outage: it comes in front of
	// a person, and the others go on. One that the endpoint dies of takes with it what
	// was out at the same moment, which does look like one: it is told apart slowly.
	manyFailed = 3

	// longestHold bounds what an endpoint may ask for all messages: it is tried now and
	// then.
	longestHold = 5 * time.Minute
)

// health is what the failures of messages say about the endpoint.
type health struct {
	mu     sync.Mutex // guards what follows
	ids    map[string]bool
	notYet time.Time // nothing is sent before
}

// answered counts anew. What the endpoint asked for stands.
func (h *health) answered() {
	h.mu.Lock()
	defer h.mu.Unlock()
	clear(h.ids)
}

// failed reports whether the endpoint is away now, rather than the message at fault.
// If it is, and asked for a delay, all wait for that.
func (h *health) failed(id string, asked time.Duration, now time.Time) (away bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ids == nil {
		h.ids = make(map[string]bool, manyFailed)
	}
	if len(h.ids) < manyFailed {
		h.ids[id] = true
	}
	if away = len(h.ids) >= manyFailed; away {
		if until := now.Add(min(asked, longestHold)); until.After(h.notYet) {
			h.notYet = until
		}
	}
	return away
}

// holds is how long nothing may be sent.
func (h *health) holds(now time.Time) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return max(0, h.notYet.Sub(now))
}

package doctor

import (
	"fmt"
	"time"
)

// margin is for the longest transaction and for clocks that differ.
const margin = day

// forever is how long a copy lies where nobody deletes it.
const forever time.Duration = -1

// history is where copies of messages lie, and for how long.
type history struct {
	check, name string
	holds       time.Duration // forever, or how long
	what        string        // what holds them that long: "the topic keeps records"
	lower       string        // how to shorten it: "lower retention.ms of the topic"
	comesBack   string        // what happens to a message that comes after it was forgotten
	endless     Level         // how bad it is where nothing ends it
}

// compare tells whether a consumer remembers what it handled for longer than a
// copy of it can lie in a broker: else one comes back that looks like new.
func (h history) compare(c Consumer) Finding {
	f := Finding{Check: h.check, Object: h.name, Consumer: c.Name}
	switch {
	case c.Retention == 0:
		f.Level = NotChecked
		f.Found = fmt.Sprintf("%s for %s; how long the consumer remembers is not known: it has not started with this version", h.what, span(h.holds))
		f.Why = "a copy that comes after its id was purged is a new message"
		f.Do = "start the consumer, or give -retention"
		return f
	case c.Retention < 0, h.holds >= 0 && c.Retention >= h.holds+margin:
		f.Level = OK
		f.Found = fmt.Sprintf("%s for %s, the consumer remembers for %s", h.what, span(h.holds), span(c.Retention))
		return f
	}
	f.Level = Problem
	f.Found = fmt.Sprintf("%s for %s, the consumer remembers for %s", h.what, span(h.holds), span(c.Retention))
	f.Why = h.comesBack
	if h.holds < 0 {
		f.Level = h.endless
		f.Do = fmt.Sprintf("set Config.Retention to inbox.KeepForever, or %s%s", h.lower, h.atMost(c))
		return f
	}
	f.Do = fmt.Sprintf("raise Config.Retention to %s or more", span(h.holds+margin))
	if c.Retention > margin {
		f.Do += fmt.Sprintf(", or %s%s", h.lower, h.atMost(c))
	}
	return f
}

// atMost is how long a copy may lie in the broker, for what a consumer remembers.
func (h history) atMost(c Consumer) string {
	if c.Retention <= margin {
		return ""
	}
	return fmt.Sprintf(" to at most %s", span(c.Retention-margin))
}

package inbox_test

import (
	"slices"

	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
)

// How often the messages of the model are handled, and how many processes they may
// take along.
const (
	modelQuick  = 2
	modelInAll  = 6
	modelDeaths = 3
)

// promise is what the library promises, in small: what becomes of messages that
// come, come again, fail, wait, die, and are replayed, discarded and forgotten. It
// knows no database, no time, and nothing that happens at once.
type promise struct {
	ordering inbox.Ordering
	messages []*modelled
	rows     []*modelled // what the inbox holds, in the order stored
	effects  []*modelled // since the last look, in order
}

// modelled is a message of the model.
type modelled struct {
	name     string // and payload
	key      string
	original *modelled // under whose id this is another payload; nil: the id is its own
	fate     fate

	outcome handler.Outcome // of its record; 0: nobody remembers it
	place   place           // in the inbox
	letter  dlq.State       // empty: it has no dead letter
	reason  dlq.Reason
	suspect bool // a process died while it held the message
	deaths  int  // processes that died in its handler, as the journal knows
}

// fate is what happens when a message is handled.
type fate struct {
	failures int      // attempts that fail
	unmended sickness // and then all, until it is mended
}

type sickness string

const (
	relapsing sickness = "relapsing"
	incurable sickness = "incurable"
)

// place is where a message waits in the inbox. Empty: it does not.
type place string

const (
	ready  place = "ready"
	behind place = "behind"
	parked place = "parked"
)

// deliver is Process. Again says that the broker has delivered it before. Where the
// process dies at a point that the message comes to, what was not committed has
// not happened.
func (p *promise) deliver(m *modelled, again bool, crash inbox.EventKind) (o handler.Outcome, died bool) {
	if m.outcome != 0 {
		return handler.Duplicate, false
	}
	suspect := again && p.ordering != inbox.ViaInbox
	if suspect {
		defer func() { m.ran(died, crash) }()
	}
	switch {
	case suspect && m.killed():
		return p.die(m, dlq.Crashed, crash)
	case p.ordering == inbox.ViaInbox || p.waits(m):
		return p.store(m, crash)
	default:
		return p.run(m, modelQuick, crash)
	}
}

// differ is the delivery of another payload under an id that is known.
func (p *promise) differ(m *modelled) {
	if m.letter == "" {
		m.letter, m.reason = dlq.Open, dlq.Mismatch
	}
}

// accept is Store.
func (p *promise) accept(m *modelled) handler.Outcome {
	if m.outcome != 0 {
		return handler.Duplicate
	}
	o, _ := p.store(m, 0)
	return o
}

// store puts a message into the inbox.
func (p *promise) store(m *modelled, crash inbox.EventKind) (o handler.Outcome, died bool) {
	return handler.Stored, commits(crash, func() {
		m.outcome, m.place = handler.Stored, ready
		if p.waits(m) {
			m.place = behind
		}
		p.rows = append(p.rows, m)
	}, inbox.Storing)
}

// run has a message handled, at most so often.
func (p *promise) run(m *modelled, attempts int, crash inbox.EventKind) (o handler.Outcome, died bool) {
	if crash == inbox.Claimed {
		return 0, true
	}
	fails := m.fate.failures >= attempts || m.fate.unmended == relapsing
	m.fate.failures = max(m.fate.failures-attempts, 0)
	switch {
	case m.fate.unmended == incurable:
		return p.die(m, dlq.Permanent, crash)
	case !fails:
		return p.takeEffect(m, crash)
	case attempts == modelInAll:
		return p.die(m, dlq.Exhausted, crash)
	case m.place != "":
		return handler.Stored, false
	default:
		return p.store(m, crash)
	}
}

func (p *promise) takeEffect(m *modelled, crash inbox.EventKind) (o handler.Outcome, died bool) {
	points := []inbox.EventKind{inbox.Handled}
	if m.place != "" && (p.ordered(m) || m.letter == dlq.Replaying) {
		points = append(points, inbox.Leaving)
	}
	return handler.Processed, commits(crash, func() {
		m.outcome = handler.Processed
		p.effects = append(p.effects, m)
		if m.letter == dlq.Replaying {
			m.letter = dlq.Resolved
		}
		p.leave(m)
	}, points...)
}

// die puts a message in front of a person. With order required it holds its key.
func (p *promise) die(m *modelled, reason dlq.Reason, crash inbox.EventKind) (o handler.Outcome, died bool) {
	var points []inbox.EventKind
	if p.ordered(m) {
		points = append(points, inbox.Parking)
	}
	return handler.Dead, commits(crash, func() {
		m.outcome, m.letter = handler.Dead, dlq.Open
		if m.original == nil {
			m.reason = reason
		}
		switch {
		case !p.ordered(m):
			p.leave(m)
		case m.place == "":
			p.rows = append(p.rows, m)
			fallthrough
		default:
			m.place = parked
		}
	}, points...)
}

// commits does what a transaction does. It has not happened if the process dies at
// one of its points, unless that is when it is committed.
func commits(crash inbox.EventKind, change func(), points ...inbox.EventKind) (died bool) {
	died = slices.Contains(append(points, inbox.Committing, inbox.Committed), crash)
	if !died || crash == inbox.Committed {
		change()
	}
	return died
}

// leave takes a message out of the inbox. The next of its key may run.
func (p *promise) leave(m *modelled) {
	p.rows = slices.DeleteFunc(p.rows, func(row *modelled) bool { return row == m })
	m.place, m.suspect = "", false
	for _, row := range p.rows {
		if p.ordered(m) && row.key == m.key {
			if row.place == behind {
				row.place = ready
			}
			return
		}
	}
}

// waits reports whether one of its key is before the message.
func (p *promise) waits(m *modelled) bool {
	for _, row := range p.rows {
		if row == m {
			break
		}
		if p.ordered(m) && row.key == m.key {
			return true
		}
	}
	return false
}

func (p *promise) ordered(m *modelled) bool { return p.ordering != inbox.PerKey && m.key != "" }

// killed reports whether a suspect has taken too many processes along: those that
// the journal knows of, and the one that made it a suspect.
func (m *modelled) killed() bool { return m.deaths+1 >= modelDeaths }

// ran is what the journal says once a suspect ran: who dies in its handler died of
// it.
func (m *modelled) ran(died bool, crash inbox.EventKind) {
	switch {
	case !died:
		m.deaths = 0
	case crash == inbox.Claimed:
		m.deaths++
	}
}

// work handles all that is ready in the inbox, and what becomes so.
func (p *promise) work() {
	for {
		next := slices.IndexFunc(p.rows, func(row *modelled) bool { return row.place == ready })
		if next < 0 {
			return
		}
		p.step(p.rows[next])
	}
}

// step is what a worker does with a message.
func (p *promise) step(m *modelled) {
	suspect := m.suspect
	m.suspect = false
	if m.outcome == handler.Processed || m.outcome == handler.Skipped {
		p.settledBefore(m)
		return
	}
	if suspect {
		defer m.ran(false, 0)
	}
	switch {
	case suspect && m.killed():
		p.die(m, dlq.Crashed, 0)
	case p.waits(m):
		m.place = behind
	default:
		p.run(m, modelInAll, 0)
	}
}

// settledBefore ends the replay of a letter that came after its message was
// replayed, or decided against, and the letter of that was deleted.
func (p *promise) settledBefore(m *modelled) {
	m.letter = dlq.Resolved
	if m.outcome == handler.Skipped {
		m.letter = dlq.Discarded
	}
	p.leave(m)
}

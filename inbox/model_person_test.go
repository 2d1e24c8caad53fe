package inbox_test

import (
	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
)

// replay is a person's decision that a worker handles a dead message again.
func (p *promise) replay(m *modelled) (decided bool) {
	if m.letter == dlq.Open {
		kept := m.place == parked
		p.enqueue(m)
		if kept && p.waits(m) {
			m.place = behind
		}
	}
	return m.letter == dlq.Replaying
}

// replayHere is the same in a process that handles it at once, if it can.
func (p *promise) replayHere(m *modelled, crash inbox.EventKind) (o handler.Outcome, died bool) {
	if m.letter != dlq.Open && m.letter != dlq.Replaying {
		return 0, false
	}
	p.enqueue(m)
	switch {
	case m.outcome == handler.Processed || m.outcome == handler.Skipped:
		p.settledBefore(m)
		return handler.Duplicate, false
	case p.waits(m):
		m.place = behind
		return handler.Stored, false
	default:
		o, died = p.run(m, modelQuick, crash)
		m.suspect = died && m.place == ready
		return o, died
	}
}

// enqueue puts a dead message into the inbox, where it has no place in it.
func (p *promise) enqueue(m *modelled) {
	if m.place == "" {
		p.rows = append(p.rows, m)
	}
	m.place, m.letter, m.suspect, m.deaths = ready, dlq.Replaying, false, 0
}

// discard is a person's decision that a dead message is never handled.
func (p *promise) discard(m *modelled) (decided bool) {
	open := m.letter == dlq.Open || m.letter == dlq.Replaying
	if !open || m.outcome == handler.Processed || m.outcome == handler.Skipped {
		return false
	}
	m.outcome, m.letter, m.deaths = handler.Skipped, dlq.Discarded, 0
	p.leave(m)
	return true
}

// reopen takes that back: it is a new message, at the end of its key.
func (p *promise) reopen(m *modelled) (decided bool) {
	if m.letter != dlq.Discarded || m.outcome != 0 && m.outcome != handler.Skipped {
		return false
	}
	m.outcome = handler.Stored
	p.enqueue(m)
	return true
}

// forget deletes the records that nobody needs: neither the inbox nor a person.
func (p *promise) forget() (forgotten []*modelled) {
	needed := make(map[*modelled]bool)
	for _, m := range p.messages {
		switch open := m.letter == dlq.Open || m.letter == dlq.Replaying; {
		case open && m.original == nil:
			needed[m] = true
		case open: // the id is the first one's
			needed[m.original] = true
		}
	}
	for _, m := range p.messages {
		if m.outcome != 0 && m.outcome != handler.Stored && !needed[m] {
			m.outcome = 0
			forgotten = append(forgotten, m)
		}
	}
	return forgotten
}

// forgetLetters deletes the dead letters that a person is done with.
func (p *promise) forgetLetters() {
	for _, m := range p.messages {
		if m.letter == dlq.Resolved || m.letter == dlq.Discarded {
			m.letter, m.reason = "", ""
		}
	}
}

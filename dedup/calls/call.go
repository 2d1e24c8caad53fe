package calls

import (
	"time"

	"github.com/semel-go/semel/dedup"
)

// Call is one call to the outside, as the ledger knows it while it is made.
type Call struct {
	// Consumer, MessageID and Step are who makes it, for which message, and what it
	// is. Message is the id as the producer wrote it.
	Consumer  string
	Message   string
	MessageID dedup.ID
	Step      string

	// Key is its idempotency key, the same for every attempt of a generation.
	// It is empty while [Options.Key] derives it.
	Key string

	// Generation is 1, and one more after each failure that the provider has told or
	// a person decided.
	Generation int

	// Attempt numbers the times it was sent, from 1. 0: it was not.
	Attempt int

	// SentFirst is when the provider saw Key first, at the earliest. Zero: it did not.
	SentFirst time.Time

	// Deadline is when the last attempt has ended for certain.
	Deadline time.Time
}

// Point is a moment of [Ledger.Do] at which a crash means something of its own.
type Point string

// The points, in the order in which a call meets them.
const (
	// BeforeIntent: nothing is written yet.
	BeforeIntent Point = "before-intent"
	// AfterIntent: it is committed that the call will be made.
	AfterIntent Point = "after-intent"
	// BeforeAsk: [Options.WasItDone] is asked next.
	BeforeAsk Point = "before-ask"
	// BeforeCall: the call is made next.
	BeforeCall Point = "before-call"
	// AfterAnswer: the call has returned, whatever it said.
	AfterAnswer Point = "after-answer"
	// BeforeResult: what came of it is known, and written nowhere.
	BeforeResult Point = "before-result"
	// AfterResult: what came of it is committed.
	AfterResult Point = "after-result"
)

// State is how a call stands.
type State int16

// The states. The numbers are stored; they never change.
const (
	// Started: it was sent, or was about to be, and nobody has told its end yet.
	Started State = 1
	// Done: the provider has done it.
	Done State = 2
	// Failed: the provider, or a person, has said that it was not done. It is made
	// under a new key when the message is tried again.
	Failed State = 3
	// Unknown: nobody can tell whether it was done. A person has to look.
	Unknown State = 4
	// Ready: it may be made under its key: nothing was sent, or a person wants it
	// again.
	Ready State = 5
)

var stateNames = [...]string{Started: "started", Done: "done", Failed: "failed", Unknown: "unknown", Ready: "ready"}

// String returns the state's name as it stands in SQL, logs and metrics.
func (s State) String() string {
	if s > 0 && int(s) < len(stateNames) {
		return stateNames[s]
	}
	return "no state"
}

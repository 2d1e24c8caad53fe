package wire

import "time"

// The points of a call to the outside, in the order in which it meets them.
// [AfterSend] is one too: the provider has it, and did not answer yet. So is
// [Stopped]: the process wakes up when the call is another's.
const (
	BeforeIntent       Point = "before-intent"        // nothing is written yet
	AfterIntent        Point = "after-intent"         // it is committed that the call will be made
	AfterAnswer        Point = "after-answer"         // the provider's answer was read
	BeforeResultCommit Point = "before-result-commit" // the ledger knows what came of it, and has not written it
	BeforeHandlerTx    Point = "before-handler-tx"    // its result is committed, the handler's transaction has not begun
)

// CallPoints returns all points of a call.
func CallPoints() []Point {
	return []Point{BeforeIntent, AfterIntent, AfterSend, AfterAnswer, BeforeResultCommit, BeforeHandlerTx, Stopped}
}

// Calls takes the place of a broker where messages are stored already, and each
// makes a call to a provider.
const Calls Broker = "calls"

// Types of the messages that make a call.
const (
	Keyed      = "keyed"       // the provider knows idempotency keys
	Asked      = "asked"       // it does not, and is asked when an end is unknown
	AskedFirst = "asked-first" // likewise, and before anything is sent
)

// How long a call may take, and how long after that it has ended for certain. Late
// work ends in between. On a machine that is too busy for that the provider does not
// begin with it any more.
const (
	CallTimeout  = 300 * time.Millisecond
	CallLate     = 600 * time.Millisecond
	CallPatience = 1500 * time.Millisecond
	CallGrace    = 2 * time.Second
)

// CallStep is the name of the call in the ledger.
const CallStep = "create-invoice"

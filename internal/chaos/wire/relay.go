package wire

import "time"

// The points of a relay, in the order in which an event meets them.
const (
	AfterRead    Point = "after-read"    // its row was read under a lease
	AfterSend    Point = "after-send"    // it is on its way to the broker, which did not answer yet
	AfterConfirm Point = "after-confirm" // the broker has confirmed it, the relay does not know yet
	BeforeMark   Point = "before-mark"   // its row is about to be marked
	MidRenewal   Point = "mid-renewal"   // the lease is prolonged, the relay does not know yet

	// Stopped is no kill: the process is stopped in the middle of its work and
	// wakes up when its leases are another's.
	Stopped Point = "stopped-owner"
)

// RelayPoints returns all points of a relay.
func RelayPoints() []Point {
	return []Point{AfterRead, AfterSend, AfterConfirm, BeforeMark, MidRenewal, Stopped}
}

// How long a lease of these relays is, and an attempt to publish.
const (
	RelayLease   = 3 * time.Second
	RelayAttempt = time.Second
)

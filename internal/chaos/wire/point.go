package wire

import (
	"fmt"
	"slices"
	"strings"
)

// Point is a place in a message's life at which its process can be killed.
type Point string

// The points, in the order in which a message meets them.
const (
	AfterClaim   Point = "after-claim"   // its row is written, not committed
	AfterHandler Point = "after-handler" // the handler returned nil
	BeforeCommit Point = "before-commit" // COMMIT is about to be sent
	AfterCommit  Point = "after-commit"  // the database has confirmed the commit
	BeforeAck    Point = "before-ack"    // the engine says settled, the source does not know yet
	AfterAck     Point = "after-ack"     // the source has acknowledged in its own way
	MidDrain     Point = "mid-drain"     // the process was told to end, and this message holds it up
)

// The points of the inbox: what is being done with the message that is held. At
// which moment of that is drawn, see [Moments].
const (
	Stored     Point = "stored"      // its attempts in place are spent: it is stored for a later one
	Behind     Point = "behind"      // it is stored behind others of its key
	Parked     Point = "parked"      // it is dead and holds its key
	MidReplay  Point = "mid-replay"  // a person had it replayed, and it succeeds
	MidRelease Point = "mid-release" // it leaves the inbox, and the next of its key may run

	// Worker500 is no message: a worker has taken [Crowd] from the inbox.
	Worker500 Point = "worker-500"
)

// Crowd is how many messages a worker holds at [Worker500].
const Crowd = 500

// Points returns all points of a consumer.
func Points() []Point {
	return []Point{
		AfterClaim, AfterHandler, BeforeCommit, AfterCommit, BeforeAck, AfterAck, MidDrain,
		Stored, Behind, Parked, MidReplay, MidRelease, Worker500,
	}
}

// OfInbox reports whether p is a point of the inbox.
func (p Point) OfInbox() bool { return slices.Index(Points(), p) > slices.Index(Points(), MidDrain) }

// Moments are where a message may be held for a point that says only what is
// being done with it.
func (p Point) Moments() []Point {
	switch p {
	case MidDrain: // up to before-ack: its ack must not come before the drain
		return []Point{AfterClaim, AfterHandler, BeforeCommit, AfterCommit, BeforeAck}
	case Stored, Behind, Parked, MidRelease:
		return []Point{AfterClaim, BeforeCommit, AfterCommit}
	case MidReplay:
		return []Point{AfterClaim, AfterHandler, BeforeCommit, AfterCommit}
	default:
		return nil
	}
}

// Broker is where the messages of a proof come from.
type Broker string

// The brokers. Memory is a queue in the parent, and a pipe to each child.
const (
	Memory   Broker = "memory"
	Kafka    Broker = "kafka"
	RabbitMQ Broker = "rabbitmq"
)

// Brokers returns all brokers.
func Brokers() []Broker { return []Broker{Memory, Kafka, RabbitMQ} }

// Select returns those of all that the comma-separated list names; empty names
// all.
func Select[T ~string](list string, all []T) ([]T, error) {
	if list == "" {
		return all, nil
	}
	var selected []T
	for name := range strings.SplitSeq(list, ",") {
		if !slices.Contains(all, T(name)) {
			return nil, fmt.Errorf("unknown name %q: use some of %v", name, all)
		}
		selected = append(selected, T(name))
	}
	return selected, nil
}

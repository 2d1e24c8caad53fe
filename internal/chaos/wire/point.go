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

// Points returns all points.
func Points() []Point {
	return []Point{AfterClaim, AfterHandler, BeforeCommit, AfterCommit, BeforeAck, AfterAck, MidDrain}
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

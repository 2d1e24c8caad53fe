// Package wire is what the parent and its children say to each other: one JSON
// value per line, orders on the child's standard input, reports on its standard
// output. For the memory broker the messages and their acknowledgements travel
// on two more pipes.
package wire

import (
	"strconv"

	"github.com/semel-go/semel/handler"
)

// File descriptors of the memory broker's pipes in a child.
const (
	MessagesFD = 3
	AnswersFD  = 4
)

// Setup is the first line that a child reads.
type Setup struct {
	Broker   Broker
	Schema   string // of Semel's tables and of the effects
	Consumer string // also the Kafka group
	Topic    string // or queue

	// Single says that the queue has a single active consumer.
	Single bool

	// Strict asks for the order of a key also past failures.
	Strict bool

	// WorkAhead is how many messages of the inbox a worker takes; 0 is the default.
	WorkAhead int

	// Workers is how many handlers run at once; 0 is the default.
	Workers int `json:",omitempty"`

	// Provider is where calls go to.
	Provider string `json:",omitempty"`

	// Archive is the folder that events go to.
	Archive string `json:",omitempty"`
}

// Order arms a child: its Skip+1st message that reaches Point is held there.
// An empty Point disarms it.
type Order struct {
	Point Point
	Skip  int

	// Hold is one of Point's Moments: where the message is held, or, for MidDrain,
	// the one that the drain waits for. For Stopped: where the process stops.
	Hold Point
}

// Report is one thing that happened in a child to a copy of a message, or in a
// relay to events.
type Report struct {
	Kind   Kind
	Copy   int
	Leased int      `json:",omitempty"`
	IDs    []string `json:",omitempty"`
}

// Kind says what happened.
type Kind string

// The kinds of reports.
const (
	Delivered Kind = "delivered" // the source hands the copy to the engine
	Refused   Kind = "refused"   // the engine did not take it
	Settled   Kind = "settled"   // the engine calls Settled
	Acked     Kind = "acked"     // the source's Settled has returned
	Returned  Kind = "returned"  // the engine calls Returned
	Leased    Kind = "leased"    // so many messages of the inbox are out of it by lease now
	Armed     Kind = "armed"     // an order was obeyed
	Holding   Kind = "holding"   // held for MidDrain: tell the process to end now
	Reached   Kind = "reached"   // held at the armed point: kill the process now
)

// The kinds of reports of a relay, beside Reached.
const (
	Sending  Kind = "sending"  // the events are handed to the publisher
	Noted    Kind = "noted"    // their rows say that they are published
	Doubtful Kind = "doubtful" // the publisher did not confirm them, or another relay owned them by then
)

// Frame is a delivery on its way to a child.
type Frame struct {
	Number  int
	Message *handler.Message
}

// Answer is what became of a frame.
type Answer struct {
	Number  int
	Settled bool // else returned
}

// headerCopy tells the copies of a message apart. It is no part of the
// message's identity.
const headerCopy = "chaos-copy"

// CopyHeader is the header of the n-th copy that was published.
func CopyHeader(n int) handler.Header {
	return handler.Header{Name: headerCopy, Value: []byte(strconv.Itoa(n))}
}

// CopyOf reads the number of a copy, -1 if it has none.
func CopyOf(msg *handler.Message) int {
	value, _ := msg.Headers.First(headerCopy)
	n, err := strconv.Atoi(string(value))
	if err != nil {
		return -1
	}
	return n
}

package main

// childArgument makes the program the consumer instead of the parent.
const childArgument = "consume"

// The parent and the child speak JSON, one value a line: orders on the child's
// standard input, and one report as the answer to each on its standard output.
// The end of the input is the order to drain and end.

// setup is the first thing that a child reads.
type setup struct {
	Streams     []place
	Application string // joined to each place's name as the sessions' name
	Plant       string
}

// place is where a stream's messages are, and where their effects go.
type place struct {
	Broker string
	Name   string // of the topic and its group, or the queue; of the consumer and its schema
}

// The brokers.
const (
	onKafka    = "kafka"
	onRabbitMQ = "rabbitmq"
)

// order is what a child is to do. It answers when it is done.
type order string

const (
	look    order = "look"    // nothing
	cut     order = "cut"     // break all connections to the brokers
	restart order = "restart" // drain all Runs, and begin anew
)

// report is how a child is.
type report struct {
	Heap       uint64 // bytes in use after a collection
	Goroutines int
	PoolTotal  int // connections of the pools
	PoolInUse  int
	Pending    int              // messages taken and not settled yet
	Settled    map[string]int64 // by broker, whatever the outcome, since its start
	Duplicates map[string]int64 // of these
	Log        map[string]int   // how often it has logged what; only in the last report
}

// work is the payload of a message: what its handler is to do.
type work struct {
	N      int
	Sleep  int  `json:",omitempty"` // milliseconds in the database
	Trip   bool `json:",omitempty"` // fail once
	Poison bool `json:",omitempty"` // fail for good
	Filler string
}

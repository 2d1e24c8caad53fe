// Ledger shows a double-entry ledger that tells of each entry, and of each order,
// through an outbox that several relays share, thousands of events a second.
//
//	go run ./examples/ledger
package main

import "github.com/semel-go/semel/examples/internal/example"

// The parts that a process of this program can play.
const (
	writerPart = "__writer"
	relayPart  = "__relay"
)

func main() {
	example.Main(example.Program{
		Name: name,
		Run:  runExample,
		Parts: map[string]example.Part{
			writerPart: example.Plays(write),
			relayPart:  example.Plays(relay),
		},
	})
}

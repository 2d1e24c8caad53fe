// Merchants shows a service that approves merchants and tells others, each
// approval once, while the broker is away and relays are killed.
//
//	go run ./examples/merchants
package main

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/semel-go/semel/examples/internal/broker"
	"github.com/semel-go/semel/examples/internal/example"
)

func main() {
	example.Main(example.Program{
		Name: "merchants",
		Run:  runExample,
		Parts: map[string]example.Part{
			relayPart:        example.Plays(runRelay),
			provisioningPart: example.Plays(runProvisioning),
			searchIndexPart:  example.Plays(runSearchIndex),
		},
	})
}

// connections are those of the service that approves.
const connections = 12

// run is one run of the example.
type run struct {
	*example.Run
	options

	gate      *broker.Gate
	reader    *topic
	reviewers *reviewers
	away      time.Duration // how long the broker was
	waited    int64         // the most events that waited for it
	kills     int
}

// runExample has merchants approved, and tells what became of it.
func runExample(ctx context.Context, args []string, out io.Writer) (err error) {
	o, err := parseOptions(args, out)
	if err != nil {
		return err
	}
	r := &run{options: o}
	r.Run, err = example.Open(ctx, out, example.Setup{
		Options:     o.Options,
		Name:        "merchants",
		Tables:      tablesSQL,
		Connections: connections,
		Consumers:   []string{provisioning, searchIndex},
		Look: []string{
			"go run ./cmd/semel outbox list -state all -schema SCHEMA",
			"go run ./cmd/semel dlq list -schema SCHEMA",
		},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close(ctx)) }()
	r.Say("this takes about %.0f seconds, %.0f of which the broker is away", (lead + r.down + trail + 5*time.Second).Seconds(), r.down.Seconds())
	if r.gate, err = broker.OpenGate(); err != nil {
		return err
	}
	defer r.gate.Close()
	if r.reader, err = openTopic(r.Kafka.Brokers, r.Topic); err != nil {
		return err
	}
	defer r.reader.client.Close()
	if err := r.work(ctx); err != nil {
		return err
	}
	return r.report(ctx)
}

// Einvoice shows an ERP whose orders become documents at somebody else's provider,
// each once, though the provider times out behind its work, resets connections and is
// down for maintenance, and the processes that call it are killed.
//
//	go run ./examples/einvoice
package main

import (
	"context"
	"errors"
	"io"

	"github.com/semel-go/semel/examples/internal/example"
)

func main() {
	example.Main(example.Program{
		Name: "einvoice",
		Run:  runExample,
		Parts: map[string]example.Part{
			relayPart:    example.Plays(runRelay),
			servicesPart: example.Plays(runServices),
			senderPart:   example.Plays(runSender),
			providerPart: playProvider,
		},
	})
}

// run is one run of the example.
type run struct {
	*example.Run
	options

	orders           []order
	providers        *providers
	kills            int
	attemptsInOutage int64
}

// runExample has the orders confirmed, and tells what became of them.
func runExample(ctx context.Context, args []string, out io.Writer) (err error) {
	o, err := parseOptions(args, out)
	if err != nil {
		return err
	}
	r := &run{options: o}
	if r.orders, err = o.readOrders(); err != nil {
		return err
	}
	r.Run, err = example.Open(ctx, out, example.Setup{
		Options:     o.Options,
		Name:        "einvoice",
		Tables:      tablesSQL,
		Connections: 4,
		Consumers:   topicConsumers(),
		Look: []string{
			"go run ./cmd/semel dlq list -schema SCHEMA",
			"go run ./cmd/semel calls list -state all -schema SCHEMA",
		},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close(ctx)) }()
	if r.providers, err = startProviders(r.variant); err != nil {
		return err
	}
	defer r.providers.close()
	r.Say("providers of documents, each a process; their ledger files are in %s", r.providers.folder)
	if err := r.work(ctx); err != nil {
		return err
	}
	return r.report(ctx)
}

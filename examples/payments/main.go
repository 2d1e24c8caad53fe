// Payments shows a service that takes a payment provider's callbacks, books each
// once, and tells others of it, while callbacks come three times, in any order, and
// its processes are killed.
//
//	go run ./examples/payments
package main

import (
	"context"
	"errors"
	"io"

	"github.com/semel-go/semel/examples/internal/example"
)

// The parts that a process of this program can play.
const (
	servicePart  = "__service"
	consumerPart = "__consumer"
)

func main() {
	example.Main(example.Program{
		Name: "payments",
		Run:  runExample,
		Parts: map[string]example.Part{
			servicePart:  example.Plays(serve),
			consumerPart: example.Plays(consume),
		},
	})
}

// run is one run of the example.
type run struct {
	*example.Run
	options

	input    *input
	provider *provider
	kills    int
	torn     int // transactions of the processes that were killed
}

// runExample handles the input, and tells what became of it.
func runExample(ctx context.Context, args []string, out io.Writer) (err error) {
	o, err := parseOptions(args, out)
	if err != nil {
		return err
	}
	in, file, err := o.open()
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // it was only read
	r := &run{options: o, input: in, provider: newProvider()}
	r.Run, err = example.Open(ctx, out, example.Setup{
		Options:     o.Options,
		Name:        "payments",
		Tables:      tablesSQL,
		Connections: 3,
		Consumers:   []string{shipping, invoicing},
		Look: []string{
			"go run ./cmd/semel dlq list -schema SCHEMA",
			`psql "$DATABASE_URL" -c 'SELECT * FROM SCHEMA.processed LIMIT 10'`,
		},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close(ctx)) }()
	if err := r.work(ctx); err != nil {
		return err
	}
	return r.report(ctx)
}

// Orders shows how a partner's orders, EDIFACT interchanges in a folder, become rows
// and events, and are done once by three others, though interchanges come twice, some
// are wrong, and the processes are killed.
//
//	go run ./examples/orders
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/semel-go/semel/examples/internal/example"
)

// The parts that a process of this program can play.
const (
	intakePart   = "__intake"
	relayPart    = "__relay"
	consumerPart = "__consumer"
)

func main() {
	example.Main(example.Program{
		Name: "orders",
		Run:  runExample,
		Parts: map[string]example.Part{
			intakePart:   example.Plays(runIntake),
			relayPart:    example.Plays(runRelay),
			consumerPart: example.Plays(runConsumer),
		},
	})
}

// run is one run of the example.
type run struct {
	*example.Run
	options

	files  []file
	folder string
	kills  int
}

// runExample delivers the interchanges, and tells what became of them.
func runExample(ctx context.Context, args []string, out io.Writer) (err error) {
	o, err := parseOptions(args, out)
	if err != nil {
		return err
	}
	r := &run{options: o}
	if r.files, err = o.readFiles(); err != nil {
		return err
	}
	r.Run, err = example.Open(ctx, out, example.Setup{
		Options:     o.Options,
		Name:        "orders",
		Tables:      tablesSQL,
		Connections: 3,
		Topic:       "edi.order.events",
		Consumers:   topicConsumers(),
		Look: []string{
			"go run ./cmd/semel dlq list -schema SCHEMA",
			`psql "$DATABASE_URL" -c 'SELECT id, total, status FROM SCHEMA.orders LIMIT 10'`,
		},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close(ctx)) }()
	if r.folder, err = os.MkdirTemp("", "semel-orders-"); err != nil {
		return fmt.Errorf("make a folder for the interchanges: %w", err)
	}
	defer os.RemoveAll(r.folder) //nolint:errcheck // in the folder for what is temporary
	r.Say("partners put their interchanges into %s", r.folder)
	if err := r.work(ctx); err != nil {
		return err
	}
	return r.report(ctx)
}

// Edihub shows a service that takes EDIFACT invoices over AS2 and acknowledges
// each when it is journaled, with the same MDN whenever it is sent again, while
// its processes are killed.
//
//	go run ./examples/edihub
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/semel-go/semel/examples/internal/example"
)

// The parts that a process of this program can play.
const (
	hubPart       = "__hub"
	relayPart     = "__relay"
	transformPart = "__transform"
	archivePart   = "__archive"
)

func main() {
	example.Main(example.Program{
		Name: "edihub",
		Run:  runExample,
		Parts: map[string]example.Part{
			hubPart:       example.Plays(serve),
			relayPart:     example.Plays(relay),
			transformPart: example.Plays(transform),
			archivePart:   example.Plays(archiveCopies),
		},
	})
}

const usage = `Partners post EDIFACT invoices over AS2, some of them twice and some of them wrong,
while the processes of the hub are killed. Each is journaled once, with one event
and one MDN, becomes JSON or a dead letter, and is archived for ten years.

  go run ./examples/edihub [flags]

` + example.Needs + `
The last line counts, from the tables, the archive, and the MDNs that partners
hold: RESULT posts=N messages=N mdn=N events=N transformed=N archived=N lost=0
doubled=0. The exit status is 1 if anything is lost or doubled, or the run fails,
and 2 for flags that make no sense.
`

// options are the flags.
type options struct {
	example.Options
	interchanges, rate int
	address            string
}

func parseOptions(args []string, out io.Writer) (o options, err error) {
	flags := o.Flags("edihub", usage)
	flags.IntVar(&o.interchanges, "n", 150, "how many good interchanges are posted, 130 to 5000")
	flags.IntVar(&o.rate, "rate", 25, "how many posts there are in a `second`, 1 to 500")
	flags.StringVar(&o.address, "listen", "", "afterwards take posts of yours at an `address` like 127.0.0.1:8080, until Ctrl-C")
	if err := flags.Parse(args, out); err != nil {
		return o, err
	}
	return o, errors.Join(example.Between("n", o.interchanges, 130, 5000), example.Between("rate", o.rate, 1, 500))
}

// run is one run of the example.
type run struct {
	*example.Run
	options

	claims, archive string // folders
	partners        *partners
	configs         map[string]*partConfig // by process
	interrupted     <-chan struct{}        // Ctrl-C
}

// runExample has partners post, and tells what became of it.
func runExample(ctx context.Context, args []string, out io.Writer) (err error) {
	o, err := parseOptions(args, out)
	if err != nil {
		return err
	}
	r := &run{options: o, partners: newPartners(), configs: make(map[string]*partConfig), interrupted: ctx.Done()}
	if o.address != "" {
		ctx = context.WithoutCancel(ctx) // Ctrl-C ends the listening, not the run
	}
	r.Run, err = example.Open(ctx, out, example.Setup{
		Options:     o.Options,
		Name:        "edihub",
		Tables:      tablesSQL,
		Connections: 3,
		Topic:       "edi.inbound.received",
		Consumers:   []string{transforming, archiving},
		Look: []string{
			"go run ./cmd/semel dlq list -schema SCHEMA",
			`psql "$DATABASE_URL" -c 'SELECT id, unb_ref, raw FROM SCHEMA.interchanges LIMIT 10'`,
		},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close(ctx)) }()
	folder, err := os.MkdirTemp("", "semel-edihub-")
	if err != nil {
		return fmt.Errorf("make the folders of the stores: %w", err)
	}
	if !o.Keep {
		defer os.RemoveAll(folder) //nolint:errcheck // temporary
	}
	r.claims, r.archive = filepath.Join(folder, "claims"), filepath.Join(folder, "archive")
	if err := errors.Join(os.Mkdir(r.claims, 0o700), os.Mkdir(r.archive, 0o700)); err != nil {
		return fmt.Errorf("make the folders of the stores: %w", err)
	}
	if _, err := r.Pool.Exec(ctx, `INSERT INTO partners (as2_name) VALUES ($1), ($2)`, acme, widget); err != nil {
		return fmt.Errorf("note the partners: %w", err)
	}
	posts := makePosts(o.interchanges)
	if err := r.work(ctx, posts); err != nil {
		return err
	}
	return r.report(ctx, len(posts)+1)
}

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/semel-go/semel/examples/internal/example"
)

const usage = `A payment provider sends signed callbacks over HTTP, three times each and in any
order, some of them poison, while the processes of the service are killed. Each
takes effect once, or is in the dead letters. What is paid is told through an
outbox and Kafka to two others, who ship and write the invoice, once.

  go run ./examples/payments [flags]

` + example.Needs + `
The last line counts, from the tables: RESULT produced=N distinct=N handled=N
duplicates=N dead=N lost=0 doubled=0 forged_refused=N superseded=N shipped=N
invoiced=N. The exit status is 1 if anything is lost or doubled, or the run fails,
and 2 for flags that make no sense.
`

// options are the flags.
type options struct {
	example.Options
	input  string
	orders int
}

func parseOptions(args []string, out io.Writer) (o options, err error) {
	flags := o.Flags("payments", usage)
	flags.StringVar(&o.input, "input", "", "read callbacks from `FILE`, - for standard input, instead of the ones that come with it: JSON Lines\n"+
		"{\"id\": text, \"type\": text, \"body\": anything}; a line that is none becomes a dead letter with its number.\n"+
		"Types that move no money here are only recorded")
	flags.IntVar(&o.orders, "n", 1200, "how many orders the events are about, 1 to 90000")
	if err := flags.Parse(args, out); err != nil {
		return o, err
	}
	return o, example.Between("n", o.orders, 1, 90_000)
}

// open opens what -input names, or makes the events that come with it.
func (o options) open() (*input, io.Closer, error) {
	switch o.input {
	case "":
		in := newInput("events.jsonl", bytes.NewReader(generateEvents(o.orders)))
		in.unparsable = []byte(`{"id":"evt_3SmL00000B7WZ01zgkWhalf","object":"event","data":`) // signed as it is
		return in, io.NopCloser(nil), nil
	case "-":
		return newInput("stdin", os.Stdin), io.NopCloser(nil), nil
	}
	f, err := os.Open(o.input)
	if err != nil {
		return nil, nil, fmt.Errorf("read the input: %w", err)
	}
	if info, err := f.Stat(); err != nil || info.IsDir() {
		_ = f.Close()
		return nil, nil, errors.Join(err, fmt.Errorf("read the input: %s is a folder: name a file of JSON Lines", o.input))
	}
	return newInput(o.input, f), f, nil
}

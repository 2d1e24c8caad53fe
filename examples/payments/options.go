package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
)

const usage = `A payment provider sends signed callbacks over HTTP, three times each and in any
order, some of them poison, while the processes of the service are killed. Each
takes effect once, or is in the dead letters. What is paid is told through an
outbox and Kafka to two others, who ship and write the invoice, once.

  go run ./examples/payments [flags]

Nothing needs to be installed. PostgreSQL is the one that $DATABASE_URL names,
else one found on the machine, else one that is downloaded (about 15 MB, once).
Kafka is the one that $KAFKA_BROKERS names (host:port,host:port), else one in
this process. All that is made there is removed at the end.

The last line counts, from the tables: RESULT produced=N distinct=N handled=N
duplicates=N dead=N lost=0 doubled=0 forged_refused=N superseded=N shipped=N
invoiced=N. The exit status is 1 if anything is lost or doubled, or the run fails,
and 2 for flags that make no sense.

`

// errUsage is wrapped by errors in the flags.
var errUsage = errors.New("see -h")

// options are the flags.
type options struct {
	input   string
	keep    bool
	orders  int
	verbose bool
}

func parseOptions(args []string, out io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("payments", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&o.input, "input", "", "read callbacks from `FILE`, - for standard input, instead of the ones that come with it: JSON Lines\n"+
		"{\"id\": text, \"type\": text, \"body\": anything}; a line that is none becomes a dead letter with its number.\n"+
		"Types that move no money here are only recorded")
	flags.BoolVar(&o.keep, "keep", false, "leave the tables to look at; an embedded PostgreSQL stays until Ctrl-C")
	flags.IntVar(&o.orders, "n", 1200, "how many orders the events are about, 1 to 90000")
	flags.BoolVar(&o.verbose, "v", false, "print what the processes log")
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(out, usage)
		flags.SetOutput(out)
		flags.PrintDefaults()
		return o, err
	case err != nil:
		return o, fmt.Errorf("%w: %w", err, errUsage)
	case flags.NArg() > 0:
		return o, fmt.Errorf("unknown argument %q: %w", flags.Arg(0), errUsage)
	case o.orders < 1 || o.orders > 90_000:
		return o, fmt.Errorf("-n is %d, it must be between 1 and 90000: %w", o.orders, errUsage)
	}
	return o, nil
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

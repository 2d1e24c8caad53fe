package main

import (
	"io"

	"github.com/semel-go/semel/examples/internal/example"
)

const usage = `Partners put their orders, EDIFACT interchanges, into a folder. Some come twice,
some are wrong. An intake makes of each a row and an event, or refuses it, and the
ERP, the warehouse and a notifier each learn of every order once, though the
processes of all of them are killed.

  go run ./examples/orders [flags]

It takes about 25 seconds.

` + example.Needs + `
The last line counts, interchanges from the input, the rest from the tables: RESULT
interchanges=N accepted=N refused=N orders=N erp=N warehouse=N notified=N lost=0
doubled=0. The exit status is 1 if anything is lost or doubled, or the run fails,
and 2 for flags that make no sense.
`

// options are the flags.
type options struct {
	example.Options
	input        string
	interchanges int
	lenient      bool
}

func parseOptions(args []string, out io.Writer) (o options, err error) {
	flags := o.Flags("orders", usage)
	flags.StringVar(&o.input, "input", "", "take the interchanges of `FILE`, or of all files of a folder, instead of the ones that come with it")
	flags.IntVar(&o.interchanges, "n", 300, "how many good interchanges come with it, 1 to 100000; 25 are delivered in a second")
	flags.BoolVar(&o.lenient, "lenient", false, "accept a message with another number of segments than it says (UNT), and characters beyond ASCII, with a warning")
	if err := flags.Parse(args, out); err != nil {
		return o, err
	}
	return o, example.Between("n", o.interchanges, 1, 100_000)
}

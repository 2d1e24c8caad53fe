package main

import (
	"errors"
	"io"
	"time"

	"github.com/semel-go/semel/examples/internal/example"
)

const name = "ledger"

const usage = `A ledger books postings, each an entry in two accounts and a step in the life of
an order, and writes the events that tell of them in the same transaction: three a
posting. Several relays, each a process of its own, share the outbox and publish
them. All that is on the topic is compared with the tables in the end.

  go run ./examples/ledger [flags]

It takes a little more than a minute (-for). Postings come at an even pace, whether
or not anybody keeps up. A writer waits until -batch of them have come, for 10 ms
at most, and books them in one transaction.

` + example.Needs + `
The last line: RESULT offered=N achieved=N send_success=N send_fail=N lag_p99_ms=N
lost=0 doubled=0. Offered and achieved are events a second; achieved counts those
that are published, over the time in which they were. send_success is how many
events are, send_fail how many attempts failed or found no broker. 99 of 100 events
were published, and known to be, within lag_p99_ms of being written. Where less is
achieved than offered it says what the machine did meanwhile. The exit status is 1
if anything is lost, doubled or out of order, the books do not balance, or the run
fails, and 2 for flags that make no sense.
`

// options are the flags.
type options struct {
	example.Options

	rate   int // events a second
	length time.Duration
	relays int
	batch  int // postings a transaction
	kill   bool
}

func parseOptions(args []string, out io.Writer) (options, error) {
	var o options
	flags := o.Flags(name, usage)
	flags.IntVar(&o.rate, "rate", 6500, "how many events a `second` are written, 30 to 100000")
	flags.DurationVar(&o.length, "for", time.Minute, "for how long, 1s to 1h")
	flags.IntVar(&o.relays, "relays", 3, "how many relays share the work, 1 to 16")
	flags.IntVar(&o.batch, "batch", 10, "how many postings one transaction books at most, 1 to 1000")
	flags.BoolVar(&o.kill, "kill", false, "kill a relay with SIGKILL half way: its events wait until its lease runs out")
	if err := flags.Parse(args, out); err != nil {
		return o, err
	}
	return o, errors.Join(
		example.Between("rate", o.rate, 30, 100_000),
		example.Between("for", o.length, time.Second, time.Hour),
		example.Between("relays", o.relays, 1, 16),
		example.Between("batch", o.batch, 1, 1000),
	)
}

package main

import (
	"errors"
	"io"
	"time"

	"github.com/semel-go/semel/examples/internal/example"
)

const usage = `Reviewers approve merchants, and others must learn of each approval once: who
provisions the merchant, and who keeps the search index. Meanwhile the broker is
away, and the processes that publish are killed.

  go run ./examples/merchants [flags]

It takes about 45 seconds, 30 of which the broker is away (-down).

` + example.Needs + `
The last line counts, from the tables and from the topic: RESULT approvals=N
p99_ms=N broker_down_s=N published=N configs=N indexed=N lost=0 doubled=0. The
exit status is 1 if anything is lost or doubled, or the run fails, and 2 for flags
that make no sense.
`

// options are the flags.
type options struct {
	example.Options
	down time.Duration
	rate int
}

func parseOptions(args []string, out io.Writer) (o options, err error) {
	flags := o.Flags("merchants", usage)
	flags.DurationVar(&o.down, "down", 30*time.Second, "how long the broker is away, 1s to 10m")
	flags.IntVar(&o.rate, "rate", 20, "how many merchants are reviewed in a `second`, 1 to 200")
	if err := flags.Parse(args, out); err != nil {
		return o, err
	}
	return o, errors.Join(
		example.Between("down", o.down, time.Second, 10*time.Minute),
		example.Between("rate", o.rate, 1, 200),
	)
}

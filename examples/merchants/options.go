package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"time"
)

const usage = `Reviewers approve merchants, and others must learn of each approval once: who
provisions the merchant, and who keeps the search index. Meanwhile the broker is
away, and the processes that publish are killed.

  go run ./examples/merchants [flags]

It takes about 45 seconds, 30 of which the broker is away (-down). Nothing needs
to be installed. PostgreSQL is the one that $DATABASE_URL names, else one found on
the machine, else one that is downloaded (about 15 MB, once). Kafka is the one
that $KAFKA_BROKERS names (host:port,host:port), else one in this process. All
that is made there is removed at the end.

The last line counts, from the tables and from the topic: RESULT approvals=N
p99_ms=N broker_down_s=N published=N configs=N indexed=N lost=0 doubled=0. The
exit status is 1 if anything is lost or doubled, or the run fails, and 2 for flags
that make no sense.

`

// errUsage is wrapped by errors in the flags.
var errUsage = errors.New("see -h")

// options are the flags.
type options struct {
	down    time.Duration
	rate    int
	verbose bool
}

func parseOptions(args []string, out io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("merchants", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.DurationVar(&o.down, "down", 30*time.Second, "how long the broker is away, 1s to 10m")
	flags.IntVar(&o.rate, "rate", 20, "how many merchants are reviewed in a `second`, 1 to 200")
	flags.BoolVar(&o.verbose, "v", false, "print what relays and consumers log")
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
	case o.down < time.Second || o.down > 10*time.Minute:
		return o, fmt.Errorf("-down is %s, it must be between 1s and 10m: %w", o.down, errUsage)
	case o.rate < 1 || o.rate > 200:
		return o, fmt.Errorf("-rate is %d, it must be between 1 and 200: %w", o.rate, errUsage)
	}
	return o, nil
}

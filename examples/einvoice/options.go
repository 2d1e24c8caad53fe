package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

const usage = `An ERP confirms orders. An adapter has each become an invoice at a provider that
is somebody else's: it times out behind its work, resets connections, is down for
maintenance, and refuses what it does not like. Meanwhile the processes that call
it are killed. Each order gets one invoice, or is in front of a person.

  go run ./examples/einvoice [flags]

It takes about 25 seconds. Nothing needs to be installed. PostgreSQL is the one
that $DATABASE_URL names, else one found on the machine, else one that is
downloaded (about 15 MB, once). Kafka is the one that $KAFKA_BROKERS names
(host:port,host:port), else one in this process. All that is made there is removed
at the end.

The last line counts, orders from the input, invoices and doubled from the
providers' own ledger files, the rest from the tables: RESULT orders=N invoices=N
missing=0 lost=0 doubled=0 dead=N attempts_in_outage=0. The exit status is 1 if
anything is missing, lost or doubled, or the run fails, and 2 for flags that make
no sense.

`

// errUsage is wrapped by errors in the flags.
var errUsage = errors.New("see -h")

// The providers there are: one without idempotency keys, which has to be asked
// first, and one with. They are also their names.
const (
	variantQuery = "query"
	variantKeys  = "keys"
	variantBoth  = "both"
)

// options are the flags.
type options struct {
	input       string
	orders      int
	variant     string
	maintenance time.Duration
	keep        bool
	verbose     bool
}

func parseOptions(args []string, out io.Writer) (options, error) {
	var o options
	variants := []string{variantBoth, variantQuery, variantKeys}
	flags := flag.NewFlagSet("einvoice", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&o.input, "input", "", "read orders from `FILE`, - for standard input, instead of the ones that come with it: JSON Lines\n"+
		"{\"id\": text, \"customer\": text, \"tax_number\": text, \"amount\": cents, \"card\": \"declined\" or nothing}")
	flags.IntVar(&o.orders, "n", 240, "how many orders come with it, 1 to 10000; 20 are confirmed in a second")
	flags.StringVar(&o.variant, "variant", variantBoth, "the `provider`: query (it has no idempotency keys), keys (it has), both (by the customer's country)")
	flags.DurationVar(&o.maintenance, "maintenance", 5*time.Second, "how long the providers are down, 2s to 10m")
	flags.BoolVar(&o.keep, "keep", false, "leave the tables to look at; an embedded PostgreSQL stays until Ctrl-C")
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
	case o.orders < 1 || o.orders > 10_000:
		return o, fmt.Errorf("-n is %d, it must be between 1 and 10000: %w", o.orders, errUsage)
	case !slices.Contains(variants, o.variant):
		return o, fmt.Errorf("-variant is %q, it is one of %s: %w", o.variant, strings.Join(variants, ", "), errUsage)
	case o.maintenance < 2*time.Second || o.maintenance > 10*time.Minute:
		return o, fmt.Errorf("-maintenance is %s, it must be between 2s and 10m: %w", o.maintenance, errUsage)
	}
	return o, nil
}

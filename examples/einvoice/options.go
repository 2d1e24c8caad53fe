package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/semel-go/semel/examples/internal/example"
)

const usage = `An ERP confirms orders. An adapter has each become an invoice at a provider that
is somebody else's: it times out behind its work, resets connections, is down for
maintenance, and refuses what it does not like. Meanwhile the processes that call
it are killed. Each order gets one invoice, or is in front of a person.

  go run ./examples/einvoice [flags]

It takes about 25 seconds.

` + example.Needs + `
The last line counts, orders from the input, invoices and doubled from the
providers' own ledger files, the rest from the tables: RESULT orders=N invoices=N
missing=0 lost=0 doubled=0 dead=N attempts_in_outage=0. The exit status is 1 if
anything is missing, lost or doubled, or the run fails, and 2 for flags that make
no sense.
`

// The providers there are: one without idempotency keys, which has to be asked
// first, and one with. They are also their names.
const (
	variantQuery = "query"
	variantKeys  = "keys"
	variantBoth  = "both"
)

// options are the flags.
type options struct {
	example.Options
	input       string
	orders      int
	variant     string
	maintenance time.Duration
}

func parseOptions(args []string, out io.Writer) (o options, err error) {
	variants := []string{variantBoth, variantQuery, variantKeys}
	flags := o.Flags("einvoice", usage)
	flags.StringVar(&o.input, "input", "", "read orders from `FILE`, - for standard input, instead of the ones that come with it: JSON Lines\n"+
		"{\"id\": text, \"customer\": text, \"tax_number\": text, \"amount\": cents, \"card\": \"declined\" or nothing}")
	flags.IntVar(&o.orders, "n", 240, "how many orders come with it, 1 to 10000; 20 are confirmed in a second")
	flags.StringVar(&o.variant, "variant", variantBoth, "the `provider`: query (it has no idempotency keys), keys (it has), both (by the customer's country)")
	flags.DurationVar(&o.maintenance, "maintenance", 5*time.Second, "how long the providers are down, 2s to 10m")
	if err := flags.Parse(args, out); err != nil {
		return o, err
	}
	if !slices.Contains(variants, o.variant) {
		err = fmt.Errorf("-variant is %q, it is one of %s: %w", o.variant, strings.Join(variants, ", "), example.ErrUsage)
	}
	return o, errors.Join(err,
		example.Between("n", o.orders, 1, 10_000),
		example.Between("maintenance", o.maintenance, 2*time.Second, 10*time.Minute),
	)
}

package example

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"time"
)

// ErrUsage is wrapped by errors in the flags.
var ErrUsage = errors.New("see -h")

// Needs says for -h what an example needs.
const Needs = `Nothing needs to be installed. PostgreSQL is the one that $DATABASE_URL names,
else one found on the machine, else one that is downloaded (about 15 MB, once).
Kafka is the one that $KAFKA_BROKERS names (host:port,host:port), else one in this
process. All that is made there is removed at the end.
`

// Options are the flags that all examples have.
type Options struct {
	Keep    bool
	Verbose bool
}

// Flags are the flags of an example. Add those of its own, then parse.
type Flags struct {
	*flag.FlagSet
	usage string
}

// Flags returns the flags that all examples have, to be parsed into o. The usage is
// what -h says before it lists them.
func (o *Options) Flags(name, usage string) Flags {
	f := Flags{flag.NewFlagSet(name, flag.ContinueOnError), usage}
	f.SetOutput(io.Discard)
	f.BoolVar(&o.Keep, "keep", false, "leave the tables to look at; an embedded PostgreSQL stays until Ctrl-C")
	f.BoolVar(&o.Verbose, "v", false, "print what the processes log")
	return f
}

// Parse parses the flags. It prints to out what -h asks for, and returns
// [flag.ErrHelp] then.
func (f Flags) Parse(args []string, out io.Writer) error {
	err := f.FlagSet.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintln(out, f.usage)
		f.SetOutput(out)
		f.PrintDefaults()
		return err
	case err != nil:
		return fmt.Errorf("%w: %w", err, ErrUsage)
	case f.NArg() > 0:
		return fmt.Errorf("unknown argument %q: %w", f.Arg(0), ErrUsage)
	}
	return nil
}

// Between returns an error if the value of a flag is not between two bounds, or on
// one of them.
func Between[T int | time.Duration](name string, value, low, high T) error {
	if value < low || value > high {
		return fmt.Errorf("-%s is %v, it must be between %v and %v: %w", name, value, low, high, ErrUsage)
	}
	return nil
}

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/semel-go/semel/internal/services"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == childArgument {
		os.Exit(consume(os.Stdin, os.Stdout, os.Stderr))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, "soak:", err)
	if errors.Is(err, errUsage) {
		os.Exit(2)
	}
	os.Exit(1)
}

// errUsage is returned by run before it has started anything.
var errUsage = errors.New("bad usage")

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	cfg, err := configure(args, stderr)
	if err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	result, err := soak(ctx, cfg, stderr)
	if err != nil {
		return err
	}
	result.write(stdout)
	return result.err()
}

// config says how long and how hard.
type config struct {
	length time.Duration
	rate   int // messages a second of each broker, copies not counted
	plant  string

	disturbances []disturbance // in turn
}

// Plants of the child itself. Those of the library are build tags.
const (
	plantLeak           = "leak"
	plantLeakConnection = "leak-connection"
)

func configure(args []string, stderr io.Writer) (cfg config, err error) {
	plants := []string{"", plantLeak, plantLeakConnection}
	flags := flag.NewFlagSet("soak", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.DurationVar(&cfg.length, "for", time.Hour, "how long to send")
	flags.IntVar(&cfg.rate, "rate", 300, "messages a second of each broker")
	list := flags.String("disturb", "", fmt.Sprintf("some of %s; empty is all, in this order", names()))
	flags.StringVar(&cfg.plant, "plant", "", fmt.Sprintf("plant a bug in the consumer: one of %q", plants))
	if err := flags.Parse(args); err != nil {
		return cfg, err
	}
	var errs []error
	if flags.NArg() > 0 {
		errs = append(errs, fmt.Errorf("%q is no flag", flags.Arg(0)))
	}
	if cfg.length < 5*time.Second {
		errs = append(errs, fmt.Errorf("-for is %s: it must be at least 5s, or there is no trend to see", cfg.length))
	}
	if cfg.rate < 20 || cfg.rate > 10_000 {
		errs = append(errs, fmt.Errorf("-rate is %d: it must be from 20 to 10000", cfg.rate))
	}
	if cfg.disturbances, err = choose(*list); err != nil {
		errs = append(errs, err)
	}
	if !slices.Contains(plants, cfg.plant) {
		errs = append(errs, fmt.Errorf("-plant is %q: it must be one of %q", cfg.plant, plants))
	}
	for _, name := range []string{services.PostgresVariable, services.KafkaVariable, services.RabbitMQVariable} {
		if os.Getenv(name) == "" {
			errs = append(errs, fmt.Errorf("%s is not set: use 'make soak', which starts the services", name))
		}
	}
	return cfg, errors.Join(errs...)
}

// Long runs have a sample each ten seconds at most and a disturbance every few
// minutes; short ones are scaled down so that each kind comes up.

func (c config) sampleEvery() time.Duration { return max(c.length/360, 250*time.Millisecond) }
func (c config) calm() time.Duration        { return min(c.length/10, 2*time.Minute) }
func (c config) freeze() time.Duration      { return min(c.length/12, 15*time.Second) }
func (c config) visit() time.Duration       { return min(c.length/9, 20*time.Second) }

// silence is how long nothing at all may happen at the end while something must.
func (c config) silence() time.Duration { return min(max(c.length, 20*time.Second), patience) }

// poisonIn is one message in how many can never succeed: about twenty in a
// short run.
func (c config) poisonIn() int {
	return min(max(c.rate*int(c.length/time.Second)/20, 20), 5000)
}

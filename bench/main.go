// Command bench measures what Semel costs, as ratios against the same work
// done without it. README.md says what each number means.
//
//	make bench
//	make bench RUN='^inline'
//	go run . -run '^inline' -rounds 1 -for 1s
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) > 0 {
		switch args[0] {
		case consumeArgument:
			return consumeAsChild(ctx, stdout)
		case relayArgument:
			return relayAsChild(ctx, stdout)
		case workArgument:
			return workAsChild(ctx, stdout)
		}
	}
	b, err := configure(args, stdout, stderr)
	if err != nil {
		return err
	}
	stopProfiles, err := b.startProfiles()
	if err != nil {
		return err
	}
	defer stopProfiles()
	return b.measureAll(ctx)
}

// fewestEvents is below what a rate can be measured of.
const fewestEvents = 10_000

func configure(args []string, stdout, stderr io.Writer) (*bench, error) {
	b := &bench{stdout: stdout, stderr: stderr}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	names := flags.String("run", "", "measure only the names that this regular expression matches")
	flags.IntVar(&b.rounds, "rounds", 5, "pairs of rounds for each ratio; the median is judged")
	flags.DurationVar(&b.round, "for", 5*time.Second, "how long each round takes")
	flags.IntVar(&b.messages, "messages", 50_000, "messages of a topic or queue in kafka_run, amqp_run and relay.amqp")
	flags.IntVar(&b.rows, "rows", 1_000_000, "rows in row.bytes")
	flags.IntVar(&b.waiting, "waiting", 1_000_000, "messages that wait in the topic in run.rss_mb, and in the inbox in inbox.rss_mb and inbox.due_p99_ms")
	flags.IntVar(&b.events, "events", 400_000, "events of an outbox that relays with nowhere to publish drain; with Kafka half as many")
	flags.IntVar(&b.pending, "pending", 5_000_000, "events that wait in relay.rss_mb, and that are purged in purge.writers_p99")
	flags.IntVar(&b.sized, "sized", 100_000, "rows of which size.* takes the size")
	flags.StringVar(&b.cpuProfile, "cpuprofile", "", "write a CPU profile of everything measured to this file")
	flags.StringVar(&b.memProfile, "memprofile", "", "write a profile of every allocation to this file")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	var err error
	if b.names, err = regexp.Compile(*names); err != nil {
		return nil, fmt.Errorf("read -run: %w", err)
	}
	if b.rounds < 1 || b.round < time.Second || min(b.messages, b.rows, b.waiting, b.sized) < workers || min(b.events, b.pending) < fewestEvents {
		return nil, fmt.Errorf("-rounds must be at least 1, -for at least 1s, -messages, -rows, -waiting and -sized at least %d, -events and -pending at least %d", workers, fewestEvents)
	}
	return b, nil
}

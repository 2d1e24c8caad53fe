// Command chaos proves that no message is lost, doubled or reordered when
// consumers are killed: see package campaign.
//
//	go run ./internal/chaos -n 300
//	go run ./internal/chaos -n 50 -plant no-claim -broker memory,kafka -point after-commit
//
// It prints a line for each point and broker and a last one that sums up, and
// ends with status 1 unless all of it is well.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/semel-go/semel/internal/chaos/campaign"
	"github.com/semel-go/semel/internal/chaos/wire"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	config, err := configure(args, stderr)
	if err != nil {
		return err
	}
	config.Progress = stderr
	summary, err := campaign.Run(ctx, config)
	if err != nil {
		return err
	}
	summary.Write(stdout)
	return summary.Err()
}

func configure(args []string, stderr io.Writer) (config campaign.Config, err error) {
	flags := flag.NewFlagSet("chaos", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.IntVar(&config.Kills, "n", 300, "how many kills must count, over all points and brokers")
	flags.StringVar(&config.Plant, "plant", "", "build the consumers with this planted bug")
	points := flags.String("point", "", fmt.Sprintf("some of %v, comma-separated; empty is all", wire.Points()))
	brokers := flags.String("broker", "", fmt.Sprintf("some of %v, comma-separated; empty is all", wire.Brokers()))
	if err := flags.Parse(args); err != nil {
		return config, err
	}
	if config.Kills < 1 {
		return config, fmt.Errorf("-n is %d: it must be at least 1", config.Kills)
	}
	if config.Points, err = wire.Select(*points, wire.Points()); err != nil {
		return config, fmt.Errorf("-point: %w", err)
	}
	if config.Brokers, err = wire.Select(*brokers, wire.Brokers()); err != nil {
		return config, fmt.Errorf("-broker: %w", err)
	}
	return config, nil
}

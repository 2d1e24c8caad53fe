// Command chaos proves that no message is lost, doubled or reordered when
// consumers are killed: see package campaign.
//
//	N=300 go run ./internal/chaos
//	N=50 PLANT=no-claim BROKER=memory,kafka POINT=after-commit go run ./internal/chaos
//
// It prints a line for each point and broker and a last one that sums up, and
// ends with status 1 unless all of it is well.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/semel-go/semel/internal/chaos/campaign"
	"github.com/semel-go/semel/internal/chaos/wire"
)

const defaultKills = 50

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Getenv, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, getenv func(string) string, stdout, stderr io.Writer) error {
	config, err := configure(getenv)
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

func configure(getenv func(string) string) (config campaign.Config, err error) {
	config.Plant = getenv("PLANT")
	config.Kills = defaultKills
	if n := getenv("N"); n != "" {
		if config.Kills, err = strconv.Atoi(n); err != nil || config.Kills < 1 {
			return config, fmt.Errorf("N is %q: it must be a number of kills, at least 1", n)
		}
	}
	if config.Points, err = wire.Select(getenv("POINT"), wire.Points()); err != nil {
		return config, fmt.Errorf("POINT: %w", err)
	}
	if config.Brokers, err = wire.Select(getenv("BROKER"), wire.Brokers()); err != nil {
		return config, fmt.Errorf("BROKER: %w", err)
	}
	return config, nil
}

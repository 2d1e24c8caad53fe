// Command chaos proves that no message is lost, doubled or reordered when
// consumers are killed, no call to a provider when its clients are, no event when
// purges that archive are, and none when relays are: see package campaign.
//
//	go run ./internal/chaos -n 300
//	go run ./internal/chaos -n 150 -broker calls
//	go run ./internal/chaos -n 60 -broker archive
//	go run ./internal/chaos -n 50 -plant no-claim -broker memory,kafka -point after-commit
//	go run ./internal/chaos -n 0 -relay-events 100000 -broker rabbitmq
//
// It prints a line for each point and broker and a last one that sums up, for
// consumers and then for relays, and ends with status 1 unless all of it is
// well. A point or a plant that only the ones know leaves the others out.
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
	proofs, err := configure(args, stderr)
	if err != nil {
		return err
	}
	if err := proofs.chooseByPlant(ctx); err != nil {
		return err
	}
	var errs []error
	if proofs.consumers.Kills > 0 {
		summary, err := campaign.Run(ctx, proofs.consumers)
		if err != nil {
			return err
		}
		summary.Write(stdout)
		errs = append(errs, summary.Err())
	}
	for _, fleet := range proofs.relays {
		result, err := campaign.RunRelays(ctx, fleet)
		if err != nil {
			return errors.Join(append(errs, err)...)
		}
		result.Write(stdout)
		errs = append(errs, result.Failure())
	}
	return errors.Join(errs...)
}

// proofs is what is to be proved.
type proofs struct {
	consumers campaign.Config        // no kills: nothing
	relays    []campaign.FleetConfig // one for each broker
}

func configure(args []string, stderr io.Writer) (p proofs, err error) {
	flags := flag.NewFlagSet("chaos", flag.ContinueOnError)
	flags.SetOutput(stderr)
	var fleet campaign.FleetConfig
	flags.IntVar(&p.consumers.Kills, "n", 300, "how many kills of consumers must count, over all points and brokers; 0 is no consumers")
	flags.IntVar(&fleet.Events, "relay-events", 100_000, "how many events are published while relays are killed; 0 is no relays")
	flags.IntVar(&fleet.Kills, "relay-kills", 10, "how many kills of relays must count at each point")
	flags.IntVar(&fleet.Relays, "relays", 16, "how many relays run at once, each a process")
	flags.StringVar(&p.consumers.Plant, "plant", "", "build the consumers, or the relays, with this planted bug")
	points := flags.String("point", "", fmt.Sprintf("some of %v for consumers, %v for relays, %v for calls, %v for an archive, comma-separated; empty is all", wire.Points(), wire.RelayPoints(), wire.CallPoints(), wire.ArchivePoints()))
	allBrokers := append(wire.Brokers(), wire.Calls, wire.Archive)
	brokers := flags.String("broker", "", fmt.Sprintf("some of %v, comma-separated; empty is all for consumers, and Kafka for relays", allBrokers))
	if err := flags.Parse(args); err != nil {
		return p, err
	}
	switch {
	case p.consumers.Kills < 0:
		return p, fmt.Errorf("-n is %d: it must not be negative", p.consumers.Kills)
	case fleet.Events < 0 || fleet.Kills < 1 || fleet.Relays < 1:
		return p, fmt.Errorf("-relay-events is %d, -relay-kills %d, -relays %d: they must be positive", fleet.Events, fleet.Kills, fleet.Relays)
	}
	selected, err := wire.Select(*points, slices.Concat(wire.Points(), wire.RelayPoints(), wire.CallPoints(), wire.ArchivePoints()))
	if err != nil {
		return p, fmt.Errorf("-point: %w", err)
	}
	p.consumers.Points, fleet.Points = selected, only(selected, wire.RelayPoints())
	if p.consumers.Brokers, err = wire.Select(*brokers, allBrokers); err != nil {
		return p, fmt.Errorf("-broker: %w", err)
	}
	if p.consumers.Groups() == 0 {
		p.consumers.Kills = 0
	}
	p.consumers.Progress, fleet.Progress, fleet.Plant = stderr, stderr, p.consumers.Plant
	relayBrokers := []wire.Broker{wire.Kafka}
	if *brokers != "" {
		relayBrokers = only(p.consumers.Brokers, []wire.Broker{wire.Kafka, wire.RabbitMQ})
	}
	for _, fleet.Broker = range relayBrokers {
		if fleet.Events > 0 && len(fleet.Points) > 0 {
			p.relays = append(p.relays, fleet)
		}
	}
	return p, nil
}

// chooseByPlant leaves out relays, or consumers, that know nothing of the plant.
func (p *proofs) chooseByPlant(ctx context.Context) error {
	if p.consumers.Plant == "" {
		return nil
	}
	ofRelays, err := campaign.PlantsRelay(ctx, p.consumers.Plant)
	switch {
	case err != nil:
		return err
	case ofRelays && len(p.relays) > 0:
		p.consumers.Kills = 0
	default:
		p.relays = nil
	}
	return nil
}

// only returns those of selected that are among known.
func only[T comparable](selected, known []T) []T {
	return slices.DeleteFunc(slices.Clone(selected), func(v T) bool { return !slices.Contains(known, v) })
}

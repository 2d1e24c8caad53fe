// Command plants proves the proofs: it plants known bugs one by one and sees
// that the tests that are there to catch them do.
//
//	go run ./internal/plants [NAME...]
//
// It prints a line for each plant and a last one that sums up, and ends with
// status 1 unless all are caught. Every proof also runs once without a bug: a
// test that fails anyway catches nothing.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"
)

// parallel is how many proofs run at once. Most of them wait for services.
const parallel = 3

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "plants:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, names []string, stdout, stderr io.Writer) error {
	plants, err := choose(catalogue(), names)
	if err != nil {
		return err
	}
	results := prove(ctx, plants, stderr)
	caught := 0
	for _, r := range results {
		fmt.Fprintln(stdout, r)
		if r.caught() {
			caught++
		}
	}
	fmt.Fprintf(stdout, "PLANTS n=%d caught=%d\n", len(results), caught)
	if caught < len(results) {
		return fmt.Errorf("%d of %d plants were not caught", len(results)-caught, len(results))
	}
	return ctx.Err()
}

// choose returns the plants of these names; none is all.
func choose(all []plant, names []string) ([]plant, error) {
	if len(names) == 0 {
		return all, nil
	}
	var chosen []plant
	for _, name := range names {
		i := slices.IndexFunc(all, func(p plant) bool { return p.name == name })
		if i < 0 {
			return nil, fmt.Errorf("unknown plant %q", name)
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

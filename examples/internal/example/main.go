// Package example is what the examples have in common beside Semel: one command
// that brings up its services, runs its processes, tells what happens, sums up, and
// removes what it made. Nothing in here is to be copied.
package example

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/semel-go/semel/examples/internal/crew"
	"github.com/semel-go/semel/examples/internal/database"
)

// Program is an example.
type Program struct {
	Name string

	// Run is the example itself.
	Run func(ctx context.Context, args []string, out io.Writer) error

	// Parts are what the other processes of this program do, by the first argument
	// they are started with.
	Parts map[string]Part
}

// Part is what a process does that is not the example itself.
type Part func(args []string) error

// Plays is the part of a process of the crew, which learns its config from the
// example and works until that is done with it.
func Plays[C any](work func(ctx context.Context, config C) error) Part {
	return func([]string) error {
		var config C
		return crew.Play(os.Stdin, &config, func(ctx context.Context) error { return work(ctx, config) })
	}
}

// Main is the main function of an example. The exit status is 0 if all went as it
// must, 1 if not, 2 for flags that make no sense.
func Main(p Program) {
	switch err := p.run(os.Args[1:]); {
	case err == nil, errors.Is(err, flag.ErrHelp):
	case errors.Is(err, ErrUsage):
		fmt.Fprintf(os.Stderr, "%s: %s\n", p.Name, err)
		os.Exit(2)
	default:
		fmt.Fprintf(os.Stderr, "%s: %s\n", p.Name, err)
		os.Exit(1)
	}
}

func (p Program) run(args []string) error {
	if database.Supervise() {
		return nil
	}
	if len(args) > 0 {
		if part := p.Parts[args[0]]; part != nil {
			return part(args[1:])
		}
	}
	// A reader of our output that leaves (head, less) must not keep us from
	// cleaning up.
	signal.Ignore(syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends us at once
	err := p.Run(ctx, args, os.Stdout)
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("stopped before the end (%w)", err)
	}
	return err
}

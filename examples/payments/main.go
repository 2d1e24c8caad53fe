// Payments shows a service that takes a payment provider's callbacks, books each
// once, and tells others of it, while callbacks come three times, in any order, and
// its processes are killed.
//
//	go run ./examples/payments
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/semel-go/semel/examples/internal/crew"
	"github.com/semel-go/semel/examples/internal/database"
)

func main() {
	if database.Supervise() {
		return
	}
	if work := partOf(os.Args[1:]); work != nil {
		var c partConfig
		exit(crew.Play(os.Stdin, &c, func(ctx context.Context) error { return work(c, ctx) }))
		return
	}
	// A reader of our output that leaves (head, less) must not keep us from
	// cleaning up.
	signal.Ignore(syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends us at once
	err := runExample(ctx, os.Args[1:], os.Stdout)
	stop()
	exit(err)
}

// exit ends the program if err says so.
func exit(err error) {
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errUsage):
		fmt.Fprintln(os.Stderr, "payments:", err)
		os.Exit(2)
	default:
		fmt.Fprintln(os.Stderr, "payments:", err)
		os.Exit(1)
	}
}

// Merchants shows a service that approves merchants and tells others, each
// approval once, while the broker is away and relays are killed.
//
//	go run ./examples/merchants
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
		err := crew.Play(os.Stdin, &c, func(ctx context.Context) error { return work(ctx, c) })
		exit(err)
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
		fmt.Fprintln(os.Stderr, "merchants:", err)
		os.Exit(2)
	default:
		fmt.Fprintln(os.Stderr, "merchants:", err)
		os.Exit(1)
	}
}

// Payments shows a service that books payments, each once, while its messages
// come three times, in any order and through processes that are killed.
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

	"github.com/semel-go/semel/examples/internal/database"
)

func main() {
	switch {
	case database.Supervise():
		return
	case len(os.Args) == 2 && os.Args[1] == consumerArg:
		if err := consume(os.Stdin); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	// A reader of our output that leaves (head, less) must not keep us from
	// cleaning up.
	signal.Ignore(syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends us at once
	err := runExample(ctx, os.Args[1:], os.Stdout)
	stop()
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

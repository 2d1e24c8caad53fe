// Einvoice shows an ERP whose orders become documents at somebody else's provider,
// each once, though the provider times out behind its work, resets connections and is
// down for maintenance, and the processes that call it are killed.
//
//	go run ./examples/einvoice
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
	switch args := os.Args[1:]; {
	case database.Supervise():
		return
	case len(args) > 0 && args[0] == providerPart:
		exit(playProvider(args[1:]))
		return
	case len(args) == 1 && partOf(args[0]) != nil:
		var c partConfig
		exit(crew.Play(os.Stdin, &c, func(ctx context.Context) error { return partOf(args[0])(ctx, c) }))
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
		fmt.Fprintln(os.Stderr, "einvoice:", err)
		os.Exit(2)
	default:
		fmt.Fprintln(os.Stderr, "einvoice:", err)
		os.Exit(1)
	}
}

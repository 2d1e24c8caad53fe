package provider

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Main is the program: it reads its flags, prints its address as its first line,
// and answers until ctx ends. A program that plays the provider beside other parts
// calls it.
func Main(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("provider", flag.ContinueOnError)
	flags.SetOutput(stderr)
	var c Config
	addr := flags.String("addr", "127.0.0.1:0", "where to listen, loopback only; port 0 is a free one")
	path := flags.String("ledger", "", "the file of calls and effects; it is made if there is none")
	script := flags.String("script", "", fmt.Sprintf("what goes wrong with the first calls, comma-separated, empty is nothing: %v", AllFaults()))
	chance := flags.String("chance", "", "what goes wrong with the others: silent=0.1,reset-after=0.05")
	flags.DurationVar(&c.Faults.LateBy, "late-by", time.Second, "how long late work takes")
	flags.StringVar(&c.Faults.Secret, "secret", "", "the bearer token that is asked for; empty is none")
	flags.DurationVar(&c.KeyTTL, "key-ttl", 24*time.Hour, "how long idempotency keys are remembered")
	flags.DurationVar(&c.Patience, "patience", time.Minute, "how long after a call has come its work may still be done")
	attended := flags.Bool("attended", false, "end when the standard input does: nobody is left behind")
	flags.Uint64Var(&c.Seed, "seed", 1, "what chance begins with")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *path == "" {
		return errors.New("-ledger is empty: name a file")
	}
	if *script != "" {
		for fault := range strings.SplitSeq(*script, ",") {
			c.Faults.Script = append(c.Faults.Script, Fault(fault))
		}
	}
	var err error
	if c.Faults.Chance, err = parseChance(*chance); err != nil {
		return err
	}
	if *attended {
		attending, left := context.WithCancel(ctx)
		defer left()
		ctx = attending
		go func() {
			_, _ = io.Copy(io.Discard, stdin)
			left()
		}()
	}
	p, err := New(*path, c)
	if err != nil {
		return err
	}
	return errors.Join(Serve(ctx, *addr, p, stdout), p.Close())
}

func parseChance(list string) (map[Fault]float64, error) {
	if list == "" {
		return nil, nil
	}
	chance := map[Fault]float64{}
	for item := range strings.SplitSeq(list, ",") {
		fault, text, _ := strings.Cut(item, "=")
		number, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return nil, fmt.Errorf("-chance: %q is not like silent=0.1", item)
		}
		chance[Fault(fault)] = number
	}
	return chance, nil
}

// Serve answers at an address of the loopback interface until ctx ends. The first
// line on stdout is the address.
func Serve(ctx context.Context, addr string, p *Provider, stdout io.Writer) error {
	host, _, err := net.SplitHostPort(addr)
	if ip := net.ParseIP(host); err == nil && (ip == nil || !ip.IsLoopback()) {
		err = fmt.Errorf("%q is not an address of the loopback interface", host)
	}
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	fmt.Fprintln(stdout, listener.Addr())
	server := &http.Server{Handler: p, ReadHeaderTimeout: 10 * time.Second}
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		<-ctx.Done()
		_ = server.Close() // clients of a provider are used to this
	}()
	err = server.Serve(listener)
	if ctx.Err() == nil {
		return fmt.Errorf("serve: %w", err)
	}
	<-closed
	return nil
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os/signal"
	"runtime"
	"sync"
	"syscall"

	"github.com/semel-go/semel/handler"
)

// consume is the child. It returns the status of the process.
func consume(stdin io.Reader, stdout, stderr io.Writer) int {
	signal.Ignore(syscall.SIGINT) // meant for the parent, who then ends our input
	if err := obey(json.NewDecoder(stdin), json.NewEncoder(stdout), stderr); err != nil {
		fmt.Fprintln(stderr, "consumer:", err)
		return 1
	}
	return 0
}

// obey does what it is told until the orders end. Then it drains.
func obey(orders *json.Decoder, reports *json.Encoder, stderr io.Writer) (err error) {
	var s setup
	if err := orders.Decode(&s); err != nil {
		return fmt.Errorf("read the setup: %w", err)
	}
	log := newLogbook(stderr)
	slog.SetDefault(slog.New(log))
	c := &crew{failed: make(chan error, len(s.Streams)), log: log}
	for _, p := range s.Streams {
		consumer, err := newConsumer(p, s)
		if err != nil {
			return err
		}
		defer consumer.close()
		c.consumers = append(c.consumers, consumer)
	}
	if err := c.start(); err != nil {
		return err
	}
	if err := reports.Encode(c.report(false)); err != nil {
		return err
	}

	told := make(chan order)
	go func() {
		defer close(told)
		for {
			var o order
			if orders.Decode(&o) != nil {
				return
			}
			told <- o
		}
	}()
	for {
		select {
		case err := <-c.failed:
			return errors.Join(err, c.drain())
		case o, ok := <-told:
			if !ok {
				return errors.Join(c.drain(), reports.Encode(c.report(true)))
			}
			if err := errors.Join(c.do(o), reports.Encode(c.report(false))); err != nil {
				return err
			}
		}
	}
}

// crew is all consumers of the process.
type crew struct {
	consumers []*consumer
	log       logbook
	stop      context.CancelFunc
	running   sync.WaitGroup
	failed    chan error // has room for all: a Run that failed must not wait
}

func (c *crew) do(o order) error {
	switch o {
	case look:
	case cut:
		for _, consumer := range c.consumers {
			consumer.wires.cut()
		}
	case restart:
		return errors.Join(c.drain(), c.start())
	default:
		return fmt.Errorf("unknown order %q", o)
	}
	return nil
}

// start begins a Run for each consumer, with a new inbox and a new source.
func (c *crew) start() error {
	ctx, stop := context.WithCancel(context.Background())
	c.stop = stop
	for _, consumer := range c.consumers {
		in, err := consumer.renew()
		if err != nil {
			return err
		}
		src := consumer.source()
		c.running.Go(func() { c.run(ctx, in.Run, src) })
	}
	return nil
}

func (c *crew) run(ctx context.Context, run func(context.Context, handler.Source) error, src handler.Source) {
	err := run(ctx, src)
	if err == nil && ctx.Err() == nil {
		err = errors.New("a Run ended though nobody told it to")
	}
	if err != nil {
		c.failed <- err
	}
}

// drain ends all Runs as a deploy does, and says what went wrong with them.
func (c *crew) drain() error {
	c.stop()
	c.running.Wait()
	select {
	case err := <-c.failed:
		return err
	default:
		return nil
	}
}

func (c *crew) report(last bool) report {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	r := report{Heap: m.HeapAlloc, Goroutines: runtime.NumGoroutine(), Settled: map[string]int64{}, Duplicates: map[string]int64{}}
	for _, consumer := range c.consumers {
		pool := consumer.pool.Stat()
		r.PoolTotal += int(pool.TotalConns())
		r.PoolInUse += int(pool.AcquiredConns())
		now := consumer.inbox.Stats()
		r.Pending += now.Running + now.Waiting
		r.Settled[consumer.place.Broker], r.Duplicates[consumer.place.Broker] = consumer.counts()
	}
	if last {
		r.Log = c.log.counts()
	}
	return r
}

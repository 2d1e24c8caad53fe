package campaign

import (
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel/internal/chaos/wire"
	"github.com/semel-go/semel/internal/services"
)

//go:embed queries/accounts.sql
var accountsSQL string

// RunRelays kills relays while events are written, and counts what came out at
// the broker. An error means that there was no proof; what went wrong in it is
// part of the result.
//
// Writers of many kinds write to one outbox; relays in processes of their own
// publish to one topic or queue. Some relays at a time are armed, and killed
// where they are when one of their events reaches the point; another process
// takes the place of each. A stopped one is woken up when its leases are
// another's. In the end what was committed is compared with what the broker has.
func RunRelays(ctx context.Context, config FleetConfig) (result FleetResult, err error) {
	config = config.withDefaults()
	if err := named([]wire.Broker{config.Broker}); err != nil {
		return result, err
	}
	dir, err := os.MkdirTemp("", "semel-chaos-")
	if err != nil {
		return result, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	binary, err := build(ctx, dir, relayProgram, config.Plant)
	if err != nil {
		return result, err
	}
	pool, err := parentPool(ctx)
	if err != nil {
		return result, err
	}
	defer pool.Close()

	name := fmt.Sprintf("chaos_%s_relays_%s", strings.ToLower(rand.Text()[:6]), config.Broker)
	cleanup := func(do func(context.Context) error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
		defer cancel()
		err = errors.Join(err, do(ctx))
	}
	defer cleanup(func(ctx context.Context) error { return dropStore(ctx, pool, name) })
	if err := createStore(ctx, pool, name); err != nil {
		return result, err
	}
	queue, err := open(ctx, spec{broker: config.Broker, point: "relays"}, name)
	if err != nil {
		return result, err
	}
	defer cleanup(queue.close)

	ledger := newLedger()
	writers, err := newWriters(ctx, pool, name, ledger)
	if err != nil {
		return result, err
	}
	f := &fleet{
		config: config, name: name, binary: binary, queue: queue, ledger: ledger,
		events: make(chan event, 1024), suspects: map[string]wire.Point{}, kills: map[wire.Point]int{},
	}
	result.config = config
	result.Err = f.run(ctx, writers)
	result.Kills, result.PIDs = f.kills, f.pids
	result.Total, result.Points, result.Notes = ledger.judge(f.suspects)
	for _, note := range result.Notes {
		f.log("%s", note)
	}
	return result, ctx.Err()
}

// parentPool has a connection for each writer.
func parentPool(ctx context.Context) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(os.Getenv(services.PostgresVariable))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", services.PostgresVariable, err)
	}
	config.MaxConns = writerCount + 2
	return pgxpool.NewWithConfig(ctx, config)
}

// fleet is the relays of one proof. All of it but the sending end of events
// belongs to the goroutine that runs it.
type fleet struct {
	config FleetConfig
	name   string // of the schema, and the topic or queue
	binary string
	queue  broker
	ledger *ledger

	relays   []*relayProcess // that live
	events   chan event
	hunts    []wire.Point // to come
	kills    map[wire.Point]int
	suspects map[string]wire.Point // events that may be sent twice, and why
	pids     []int                 // of the first relays
}

// run writes, kills, and waits until all is published and read back.
func (f *fleet) run(ctx context.Context, w *writers) (err error) {
	defer f.abandon()
	harvest := harvestOf(f.config.Broker, f.name)
	reading, stopReading := context.WithCancel(ctx)
	var writing, all sync.WaitGroup
	var enough atomic.Bool
	errs := make(chan error, writerCount+1) // room for all
	all.Go(func() { errs <- harvest.run(reading, f.ledger.sees) })
	for range writerCount {
		writing.Go(func() { errs <- w.write(ctx, enough.Load) })
	}
	defer func() {
		enough.Store(true)
		writing.Wait()
		stopReading()
		all.Wait()
		close(errs)
		for e := range errs {
			err = errors.Join(err, e)
		}
	}()

	for range f.config.Relays {
		p, err := f.recruit()
		if err != nil {
			return err
		}
		f.pids = append(f.pids, p.cmd.Process.Pid)
	}
	for range f.config.Kills {
		f.hunts = append(f.hunts, f.config.Points...)
	}
	err = f.await(ctx, "kill as often as planned", func() bool {
		committed, _, _ := f.ledger.counts()
		f.hunt()
		return len(f.hunts) == 0 && f.hunted() == 0 && committed >= f.config.Events
	})
	if err != nil {
		return err
	}
	enough.Store(true)
	writing.Wait()
	if err := f.await(ctx, "publish what is left", func() bool { return f.ledger.backlog() <= 0 }); err != nil {
		return err
	}
	for _, p := range f.relays {
		p.retired = true
		p.terminate()
	}
	if err := f.await(ctx, "end the last relays", func() bool { return len(f.relays) == 0 }); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, f.config.Patience)
	defer cancel()
	return harvest.complete(ctx, func() int { _, _, copies := f.ledger.counts(); return copies })
}

// await handles events until done. It gives up when nothing is killed, written
// or seen for a while.
func (f *fleet) await(ctx context.Context, what string, done func() bool) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	since, before := time.Now(), f.progress()
	for !done() {
		select {
		case e := <-f.events:
			if err := f.apply(e); err != nil {
				return err
			}
		case <-tick.C:
			f.lookAfter()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if now := f.progress(); now != before {
			since, before = time.Now(), now
		}
		if time.Since(since) > f.config.Patience {
			committed, distinct, _ := f.ledger.counts()
			return fmt.Errorf("%s: %w (for %s; %d events committed, %d seen, %d kills to go)",
				what, errStuck, f.config.Patience, committed, distinct, len(f.hunts)+f.hunted())
		}
	}
	return nil
}

// progress changes as long as something happens.
func (f *fleet) progress() [3]int {
	_, distinct, _ := f.ledger.counts()
	return [3]int{distinct, len(f.hunts), len(f.relays)}
}

func (f *fleet) log(format string, args ...any) {
	fmt.Fprintf(f.config.Progress, "relays   %-13s %s\n", f.config.Broker, fmt.Sprintf(format, args...))
}

package campaign

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/internal/chaos/wire"
)

const (
	maxWaves    = 8  // sent to one armed child before the point counts as unreachable
	maxSkip     = 25 // messages that pass the point before one is held
	allIn       = 5  // in one wave of so many all children are armed
	publishTime = 30 * time.Second
)

// errStuck ends a group in which nothing happens any more.
var errStuck = errors.New("nothing happens any more")

// group runs the rounds of one broker and point. All of it but the sending end
// of events belongs to the goroutine that runs it.
type group struct {
	spec
	config Config
	name   string // of the schema, the consumer, and the topic or queue
	binary string
	queue  broker
	log    func(format string, args ...any)

	load   *load
	books  *books
	crew   []*process // children that live, the youngest last
	events chan event
	killed int // kills that count
}

// run goes through all rounds and lets the last children end as they should.
func (g *group) run(ctx context.Context) error {
	defer g.abandon()
	for range g.spec.crew.size {
		if err := g.recruit(); err != nil {
			return err
		}
	}
	for g.killed < g.kills {
		if err := g.round(ctx); err != nil {
			return err
		}
	}
	return g.retire(ctx)
}

// round kills at least one child at the point, and ends when all is settled.
func (g *group) round(ctx context.Context) error {
	redelivered := g.books.redelivered
	g.books.suspects = 0
	if err := g.hunt(ctx); err != nil {
		return err
	}
	began := time.Now()
	if err := g.publish(ctx, g.load.barrier()); err != nil {
		return err
	}
	if err := g.await(ctx, "settle what was in flight", g.books.quiet); err != nil {
		return err
	}
	g.log("kill %3d/%-3d in flight %3d  redelivered %3d  settled in %4.1fs",
		g.killed, g.kills, g.books.suspects, g.books.redelivered-redelivered, time.Since(began).Seconds())
	return nil
}

// hunt arms children and sends messages until one was killed at the point. Now
// and then all are armed, and several die at once; else they are armed in turn,
// since the one that is armed may have nothing to do: a standby.
func (g *group) hunt(ctx context.Context) error {
	before := g.killed
	killed := func() bool { return g.killed > before && !g.dying() }
	for wave := range maxWaves {
		if rand.IntN(allIn) == 0 {
			g.arm(g.crew...)
		} else {
			g.arm(g.crew[wave%len(g.crew)])
		}
		if err := g.publish(ctx, g.load.wave()); err != nil {
			return err
		}
		err := g.await(ctx, "reach the point", func() bool { return killed() || (g.books.quiet() && !g.dying()) })
		if err != nil || killed() {
			return err
		}
		g.arm()
	}
	return fmt.Errorf("reach the point: no message did in %d waves", maxWaves)
}

func (g *group) publish(ctx context.Context, messages []*handler.Message) error {
	ctx, cancel := context.WithTimeout(ctx, publishTime)
	defer cancel()
	copies := make([]*handler.Message, len(messages))
	for i, m := range messages {
		copies[i] = numbered(m, g.books.publish())
	}
	return errors.Join(g.queue.Publish(ctx, copies)...)
}

// await handles events until done. It gives up when there are none for a while.
func (g *group) await(ctx context.Context, what string, done func() bool) error {
	patience := time.NewTimer(g.config.Patience)
	defer patience.Stop()
	for !done() {
		patience.Reset(g.config.Patience)
		select {
		case e := <-g.events:
			if err := g.apply(e); err != nil {
				return err
			}
		case <-patience.C:
			return fmt.Errorf("%s: %w (for %s; %d copies were never settled, %d of killed processes did not come again, %d are in flight)",
				what, errStuck, g.config.Patience, g.books.unsettled, len(g.books.again), g.books.inFlight())
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// apply takes one event into the books, and has a child killed whose message
// reached the point.
func (g *group) apply(e event) error {
	p, n := e.process, e.report.Copy
	if e.ended {
		return g.bury(p, e.err)
	}
	switch e.report.Kind {
	case wire.Delivered:
		g.books.delivered(p, n)
	case wire.Settled:
		g.books.settled(n)
	case wire.Acked, wire.Returned, wire.Refused:
		g.books.ended(p, n)
	case wire.Holding:
		g.arm()
		p.terminate()
	case wire.Reached:
		p.doomed = true
		g.books.held(p, n)
		g.arm()
		time.AfterFunc(g.holdTime(), p.kill)
	}
	return nil
}

// holdTime is how long the rest of a process goes on while its message is held.
// On Kafka it is longer than the commit interval every other time: whatever is
// committed past the held message is lost then.
func (g *group) holdTime() time.Duration {
	if g.broker == wire.Kafka && g.killed%2 == 0 {
		return 900 * time.Millisecond
	}
	return rand.N(30 * time.Millisecond)
}

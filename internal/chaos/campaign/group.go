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
	maxSkipRare = 3  // likewise, at points that few pass
	allIn       = 5  // in one wave of so many all children are armed
	publishTime = 30 * time.Second
	lookEvery   = 20 * time.Millisecond
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
	store  store
	crew   []*process // children that live, the youngest last
	events chan event
	killed int       // kills that count
	stock  stock     // at the last look
	moved  time.Time // when something happened last
}

// runWithPerson runs the group beside a person who decides about its dead letters,
// if it has one.
func (g *group) runWithPerson(ctx context.Context) error {
	if !g.ofInbox() {
		return g.run(ctx)
	}
	deciding, stop := context.WithCancel(ctx)
	failed := make(chan error, 1)
	go func() { failed <- g.store.person(deciding) }()
	err := g.run(ctx)
	stop()
	return errors.Join(err, <-failed)
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

// round kills at least one child at the point, and ends when all is settled: what
// may have been under way at this kill must not be there at the next one. A
// message that is so three times is dead, and that would be right.
func (g *group) round(ctx context.Context) error {
	redelivered := g.books.redelivered
	g.books.suspects = 0
	hunt := g.hunt
	if g.point == wire.Worker500 {
		hunt = g.huntCrowd
	}
	if err := hunt(ctx); err != nil {
		return err
	}
	began := time.Now()
	if err := g.publish(ctx, g.load.barrier()); err != nil {
		return err
	}
	if err := g.await(ctx, "settle what was in flight", func() (bool, error) { return g.settled(ctx) }); err != nil {
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
	passed := func() (bool, error) {
		if killed() {
			return true, nil
		}
		return g.settled(ctx)
	}
	for wave := range maxWaves {
		if rand.IntN(allIn) == 0 {
			g.arm(g.crew...)
		} else {
			g.arm(g.crew[wave%len(g.crew)])
		}
		if err := g.publish(ctx, g.load.wave()); err != nil {
			return err
		}
		err := g.await(ctx, "reach the point", passed)
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

// huntCrowd fills the inbox with messages that wait for a later attempt, has them
// handled at once, and kills the child that has taken a crowd of them.
func (g *group) huntCrowd(ctx context.Context) error {
	if err := g.publish(ctx, g.load.crowd(wire.Crowd+1)); err != nil {
		return err
	}
	err := g.await(ctx, "store the crowd", func() (bool, error) {
		_, err := g.settled(ctx)
		return g.stock.delayed > wire.Crowd, err
	})
	if err != nil {
		return err
	}
	before, p := g.killed, g.crew[0]
	g.arm(p)
	if err := g.await(ctx, "arm the child", func() (bool, error) { return p.armed, nil }); err != nil {
		return err
	}
	if err := g.store.mendLate(ctx); err != nil {
		return err
	}
	return g.await(ctx, "take the crowd", func() (bool, error) { return g.killed > before, nil })
}

// settled reports that nothing is under way any more: every copy is settled, and
// nothing is left in the inbox or for a person to decide. While copies are not, the
// database is not asked.
func (g *group) settled(ctx context.Context) (bool, error) {
	if !g.books.quiet() || g.dying() {
		return false, nil
	}
	s, err := g.store.stock(ctx)
	if s != g.stock {
		g.stock, g.moved = s, time.Now()
	}
	if !g.ofInbox() { // nobody decides about the poison
		s.undecided = 0
	}
	return s == stock{}, err
}

// await handles events until done. It gives up when nothing happens for a while.
func (g *group) await(ctx context.Context, what string, done func() (bool, error)) error {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	g.moved = time.Now()
	for {
		if is, err := done(); is || err != nil {
			return err
		}
		select {
		case e := <-g.events:
			g.moved = time.Now()
			if err := g.apply(e); err != nil {
				return err
			}
		case <-look.C:
			if time.Since(g.moved) > g.config.Patience {
				return fmt.Errorf("%s: %w (for %s; %d copies were never settled, %d of killed processes did not come again, %d are in flight; %s)",
					what, errStuck, g.config.Patience, g.books.unsettled, len(g.books.again), g.books.inFlight(), g.stock)
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
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
	case wire.Acked:
		g.books.acked(p, n)
	case wire.Returned, wire.Refused:
		g.books.ended(p, n)
	case wire.Leased:
		g.books.leased[p] = e.report.Leased
	case wire.Armed:
		p.armed = true
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

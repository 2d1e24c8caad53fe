package campaign

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"syscall"
	"time"

	"github.com/semel-go/semel/internal/chaos/wire"
)

// holdArchive is how long others may go on with what one has that is about to die.
const holdArchive = 100 * time.Millisecond

func (g *archivers) recruit() error {
	p, err := start(g.binary, wire.Setup{Broker: g.broker, Schema: g.name, Archive: g.dir}, stored{}, g.events)
	if err == nil {
		g.crew = append(g.crew, p)
	}
	return err
}

// apply takes one event into the books.
func (g *archivers) apply(ctx context.Context, e event) error {
	switch {
	case e.ended:
		return g.bury(ctx, e.process, e.err)
	case e.report.Kind == wire.Reached:
		_, object, err := g.look(ctx)
		if err != nil {
			return err
		}
		g.hands[e.process] = object
		g.arm(wire.Order{})
		e.process.doomed = true
		time.AfterFunc(rand.N(holdArchive), e.process.kill)
	}
	return nil
}

// bury takes an archiver that has ended out of the books, looks whether every event
// is somewhere, and replaces it.
func (g *archivers) bury(ctx context.Context, p *process, err error) error {
	g.crew = slices.DeleteFunc(g.crew, func(other *process) bool { return other == p })
	switch {
	case p.doomed && killedBy(err, syscall.SIGKILL), g.point == wire.MidWrite && killedBy(err, syscall.SIGXFSZ):
		if err := g.died(ctx, p); err != nil {
			return err
		}
		return g.recruit()
	case p.retired && (err == nil || killedBy(err, syscall.SIGTERM)): // one that had just started does not listen yet
		return nil
	default:
		return fmt.Errorf("an archiver ended by itself: %s; it said last: %s", p.cmd.ProcessState, p.stderr)
	}
}

// died counts a kill, if a batch was in hand. At mid-write it was: the kernel has
// ended the process there.
func (g *archivers) died(ctx context.Context, p *process) error {
	if g.point == wire.MidWrite {
		g.arm(wire.Order{})
	}
	if g.point == wire.MidWrite || g.hands[p] != "" {
		g.killed++
	} else {
		g.missed++
	}
	delete(g.hands, p)
	return g.books.everythingIsSomewhere(ctx, g.sent)
}

// await handles events until done. It gives up when nothing happens for a while.
func (g *archivers) await(ctx context.Context, what string, done func() (bool, error)) error {
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
			if err := g.apply(ctx, e); err != nil {
				return err
			}
		case <-look.C:
			if time.Since(g.moved) > g.config.Patience {
				return fmt.Errorf("%s: %w (for %s; %s)", what, errStuck, g.config.Patience, g.stock)
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// abandon makes sure that no archiver is left.
func (g *archivers) abandon() {
	for _, p := range g.crew {
		p.kill()
	}
	for len(g.crew) > 0 {
		if e := <-g.events; e.ended {
			g.crew = slices.DeleteFunc(g.crew, func(p *process) bool { return p == e.process })
		}
	}
}

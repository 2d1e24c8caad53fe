package campaign

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"syscall"

	"github.com/semel-go/semel/internal/chaos/wire"
)

// recruit starts a child.
func (g *group) recruit() error {
	setup := wire.Setup{
		Broker: g.broker, Schema: g.name, Consumer: g.name, Topic: g.name,
		Single: g.spec.crew.single, Strict: g.ofInbox(), WorkAhead: g.workAhead(),
	}
	p, err := start(g.binary, setup, g.queue, g.events)
	if err != nil {
		return err
	}
	g.crew = append(g.crew, p)
	return nil
}

// bury takes a child that has ended out of the books and replaces it. Only a
// child that was held at the point and killed there counts.
func (g *group) bury(p *process, err error) error {
	g.remove(p)
	g.books.died(p)
	switch {
	case p.doomed && killedBy(err, syscall.SIGKILL):
		g.killed++
		return g.recruit()
	case p.retired && (err == nil || killedBy(err, syscall.SIGTERM)): // a child that had just started does not listen yet
		return nil
	default:
		return fmt.Errorf("a child ended by itself: %s; it said last: %s", p.cmd.ProcessState, p.stderr)
	}
}

// arm arms these children and calls the trap off for the others that have not
// run into it.
func (g *group) arm(armed ...*process) {
	order := wire.Order{Point: g.point, Skip: rand.IntN(maxSkip)}
	if moments := g.point.Moments(); len(moments) > 0 {
		order.Hold = moments[rand.IntN(len(moments))]
	}
	if g.ofInbox() {
		order.Skip = rand.IntN(maxSkipRare)
	}
	for _, p := range g.crew {
		if slices.Contains(armed, p) {
			p.order(order)
		} else {
			p.order(wire.Order{})
		}
	}
}

func (g *group) remove(p *process) {
	g.crew = slices.DeleteFunc(g.crew, func(other *process) bool { return other == p })
}

// dying reports that a child is on its way out.
func (g *group) dying() bool {
	for _, p := range g.crew {
		if p.told || p.doomed {
			return true
		}
	}
	return false
}

// retire tells the children to end, now that nothing is in flight, and sees
// that they do.
func (g *group) retire(ctx context.Context) error {
	for _, p := range g.crew {
		p.retired = true
		p.terminate()
	}
	return g.await(ctx, "end the last consumers", func() (bool, error) { return len(g.crew) == 0, nil })
}

// abandon makes sure that no child is left.
func (g *group) abandon() {
	for _, p := range g.crew {
		p.kill()
	}
	for len(g.crew) > 0 {
		if e := <-g.events; e.ended {
			g.remove(e.process)
		}
	}
}

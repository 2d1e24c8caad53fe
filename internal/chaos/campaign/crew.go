package campaign

import (
	"context"
	"fmt"

	"github.com/semel-go/semel/internal/chaos/wire"
)

// recruit starts a child.
func (g *group) recruit() error {
	p, err := start(g.binary, wire.Setup{Broker: g.broker, Schema: g.name, Consumer: g.name, Topic: g.name}, g.queue, g.events)
	if err != nil {
		return err
	}
	g.crew[p] = true
	return nil
}

// bury takes a child that has ended out of the books and replaces it. Only a
// child that was held at the point and killed there counts.
func (g *group) bury(p *process, err error) error {
	delete(g.crew, p)
	g.books.died(p)
	switch {
	case p.doomed && wasKilled(err):
		g.killed++
		return g.recruit()
	case p.retired && err == nil:
		return nil
	default:
		return fmt.Errorf("a child ended by itself (%v); it said last: %s", err, p.stderr)
	}
}

// disarm calls the trap off for those who have not run into it.
func (g *group) disarm() {
	for p := range g.crew {
		p.order(wire.Order{})
	}
}

// dying reports that a child is on its way out.
func (g *group) dying() bool {
	for p := range g.crew {
		if p.told || p.doomed {
			return true
		}
	}
	return false
}

// retire tells the children to end, now that nothing is in flight, and sees
// that they do.
func (g *group) retire(ctx context.Context) error {
	for p := range g.crew {
		p.retired = true
		p.terminate()
	}
	return g.await(ctx, "end the last consumers", func() bool { return len(g.crew) == 0 })
}

// abandon makes sure that no child is left.
func (g *group) abandon() {
	for p := range g.crew {
		p.kill()
	}
	for len(g.crew) > 0 {
		if e := <-g.events; e.ended {
			delete(g.crew, e.process)
		}
	}
}

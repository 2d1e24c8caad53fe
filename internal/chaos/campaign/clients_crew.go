package campaign

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"syscall"
	"time"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/internal/chaos/wire"
)

const (
	callSkip  = 4                      // calls that pass the point before one is held
	holdCalls = 100 * time.Millisecond // for others to be held there too

	// A stopped client wakes up a little after another one may have its call, and
	// every other time when all is done without it.
	wakeAfterLease = wire.CallTimeout + wire.CallGrace
)

// stored takes the place of a broker: messages are in the inbox already.
type stored struct{}

func (stored) Publish(context.Context, []*handler.Message) []error { return nil }
func (stored) attach(*exec.Cmd) (detach func(), err error)         { return itself() }
func (stored) close(context.Context) error                         { return nil }

// recruit starts a client. One that is stopped makes one call at a time, so that it is
// known where that is: between its last look at the clock and the network, nobody but
// a provider that knows keys could tell it from a second one when the process goes on.
func (g *clients) recruit() error {
	setup := wire.Setup{Broker: g.broker, Schema: g.name, Consumer: g.name, Workers: callers, WorkAhead: callers, Provider: g.provider.URL()}
	if g.point == wire.Stopped {
		setup.Workers = 1
	}
	p, err := start(g.binary, setup, stored{}, g.events)
	if err != nil {
		return err
	}
	g.crew = append(g.crew, &client{process: p, hand: map[int]bool{}})
	return nil
}

// arm arms these clients and calls the trap off for the others.
func (g *clients) arm(armed ...*client) {
	order := wire.Order{Point: g.point, Skip: rand.IntN(callSkip)}
	if g.point == wire.Stopped {
		holds := []wire.Point{wire.AfterIntent, wire.AfterSend, wire.AfterAnswer, wire.BeforeResultCommit}
		order.Hold = holds[rand.IntN(len(holds))]
	}
	for _, p := range g.crew {
		if slices.Contains(armed, p) {
			p.order(order)
		} else {
			p.order(wire.Order{})
		}
	}
}

// apply takes one event into the books.
func (g *clients) apply(e event) error {
	i := slices.IndexFunc(g.crew, func(p *client) bool { return p.process == e.process })
	p, n := g.crew[i], e.report.Copy
	if e.ended {
		return g.bury(p, e.err)
	}
	switch e.report.Kind {
	case wire.Delivered:
		p.hand[n] = true
		if g.again[n] {
			delete(g.again, n)
			g.redelivered++
		}
	case wire.Returned, wire.Settled:
		delete(p.hand, n)
	case wire.Reached:
		g.reached(p)
	}
	return nil
}

// reached has a client killed, or left alone while its call becomes another's. One
// that stops beside another is killed.
func (g *clients) reached(p *client) {
	g.arm()
	if g.point == wire.Stopped && g.asleep == nil {
		g.asleep, g.wakeAt = p, time.Time{}
		if g.killed%2 == 0 {
			g.wakeAt = time.Now().Add(wakeAfterLease + rand.N(wire.CallTimeout))
		}
		g.takeAway(p)
		return
	}
	p.doomed = true
	time.AfterFunc(rand.N(holdCalls), p.kill)
}

// dying reports that a client is on its way out.
func (g *clients) dying() bool {
	return slices.ContainsFunc(g.crew, func(p *client) bool { return p.doomed })
}

// takeAway notes that others will have what a client has in hand.
func (g *clients) takeAway(p *client) {
	for n := range p.hand {
		g.again[n] = true
	}
}

// wake lets the stopped client go on.
func (g *clients) wake() {
	_ = g.asleep.cmd.Process.Signal(syscall.SIGCONT)
	g.asleep = nil
	g.killed++
}

// bury takes a client that has ended out of the books and replaces it.
func (g *clients) bury(p *client, err error) error {
	g.remove(p)
	switch {
	case p.doomed && killedBy(err, syscall.SIGKILL):
		g.takeAway(p)
		g.killed++
		return g.recruit()
	case p.retired && (err == nil || killedBy(err, syscall.SIGTERM)): // one that had just started does not listen yet
		return nil
	default:
		return fmt.Errorf("a client ended by itself: %s; it said last: %s", p.cmd.ProcessState, p.stderr)
	}
}

func (g *clients) remove(p *client) {
	g.crew = slices.DeleteFunc(g.crew, func(other *client) bool { return other == p })
}

// abandon makes sure that no client is left.
func (g *clients) abandon() {
	for _, p := range g.crew {
		p.kill()
	}
	for len(g.crew) > 0 {
		if e := <-g.events; e.ended {
			g.crew = slices.DeleteFunc(g.crew, func(p *client) bool { return p.process == e.process })
		}
	}
}

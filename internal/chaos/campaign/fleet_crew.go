package campaign

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"syscall"
	"time"

	"github.com/semel-go/semel/internal/chaos/wire"
)

const (
	atOnce      = 3                // relays that are hunted at a time, at most half
	huntTime    = 10 * time.Second // to reach the point; then another relay is armed
	wakeSurplus = 1500 * time.Millisecond
)

// relayProcess is one relay.
type relayProcess struct {
	*process
	flying map[string]bool // events that it sent and did not note

	point  wire.Point // it is armed for, or held at; "" if for none
	armed  time.Time
	wakeAt time.Time // it is stopped until then
	awake  time.Time // since when it goes on: what it sends now it may have had in hand
}

func (f *fleet) recruit() (*relayProcess, error) {
	p, err := start(f.binary, wire.Setup{Broker: f.config.Broker, Schema: f.name, Consumer: f.name, Topic: f.name}, f.queue, f.events)
	if err != nil {
		return nil, err
	}
	r := &relayProcess{process: p, flying: map[string]bool{}}
	f.relays = append(f.relays, r)
	return r, nil
}

// hunted is how many relays are armed, dying, or stopped.
func (f *fleet) hunted() (n int) {
	for _, r := range f.relays {
		if r.point != "" {
			n++
		}
	}
	return n
}

// hunt arms relays for the points to come.
func (f *fleet) hunt() {
	for len(f.hunts) > 0 && f.hunted() < min(atOnce, max(f.config.Relays/2, 1)) {
		var free []*relayProcess
		for _, r := range f.relays {
			if r.point == "" && time.Since(r.awake) > wire.RelayLease {
				free = append(free, r)
			}
		}
		if len(free) == 0 {
			return
		}
		r := free[rand.IntN(len(free))]
		r.point, r.armed, f.hunts = f.hunts[0], time.Now(), f.hunts[1:]
		order := wire.Order{Point: r.point, Skip: rand.IntN(4)}
		if r.point == wire.Stopped {
			holds := []wire.Point{wire.AfterRead, wire.AfterSend, wire.AfterConfirm, wire.BeforeMark}
			order.Hold = holds[rand.IntN(len(holds))]
		}
		r.order(order)
	}
}

// lookAfter disarms relays that do not come to the point, and wakes stopped ones.
func (f *fleet) lookAfter() {
	for _, r := range f.relays {
		switch {
		case !r.wakeAt.IsZero() && time.Now().After(r.wakeAt):
			f.kills[r.point]++
			f.suspect(r, slices.Collect(maps.Keys(r.flying)))
			f.log("stopped %d for %s, kill %d", r.cmd.Process.Pid, wire.RelayLease+wakeSurplus, f.killed())
			r.wakeAt, r.awake = time.Time{}, time.Now()
			_ = r.cmd.Process.Signal(syscall.SIGCONT)
			r.point = ""
		case r.point != "" && !r.doomed && r.wakeAt.IsZero() && time.Since(r.armed) > huntTime:
			r.order(wire.Order{})
			f.hunts = append(f.hunts, r.point)
			r.point = ""
		}
	}
}

// apply takes one event into the books.
func (f *fleet) apply(e event) error {
	i := slices.IndexFunc(f.relays, func(r *relayProcess) bool { return r.process == e.process })
	r := f.relays[i]
	if e.ended {
		return f.bury(r, e.err)
	}
	switch e.report.Kind {
	case wire.Sending:
		for _, id := range e.report.IDs {
			r.flying[id] = true
		}
		if !r.awake.IsZero() && time.Since(r.awake) < wire.RelayLease {
			f.suspect(r, e.report.IDs)
		}
	case wire.Noted:
		for _, id := range e.report.IDs {
			delete(r.flying, id)
		}
	case wire.Doubtful:
		f.suspect(r, e.report.IDs)
		for _, id := range e.report.IDs {
			delete(r.flying, id)
		}
	case wire.Reached:
		f.reached(r)
	}
	return nil
}

// reached has a relay killed, or left alone until its leases are another's.
func (f *fleet) reached(r *relayProcess) {
	switch r.point {
	case "": // it was disarmed too late: another one is on its way here
		r.doomed = true
		r.kill()
	case wire.Stopped:
		r.wakeAt = time.Now().Add(wire.RelayLease + wakeSurplus)
	default:
		r.doomed = true
		time.AfterFunc(rand.N(30*time.Millisecond), r.kill)
	}
}

// suspect takes events for ones that may be sent twice, since the relay was
// killed or stopped, or was not sure itself.
func (f *fleet) suspect(r *relayProcess, ids []string) {
	at := r.point
	if !r.awake.IsZero() && at == "" {
		at = wire.Stopped
	}
	for _, id := range ids {
		if f.suspects[id] == "" {
			f.suspects[id] = at
		}
	}
}

// bury takes a relay that has ended out of the books and replaces it.
func (f *fleet) bury(r *relayProcess, err error) error {
	f.relays = slices.DeleteFunc(f.relays, func(other *relayProcess) bool { return other == r })
	switch {
	case r.doomed && killedBy(err, syscall.SIGKILL):
		f.suspect(r, slices.Collect(maps.Keys(r.flying)))
		if r.point != "" {
			f.kills[r.point]++
			f.log("kill %d %s: %d events on their way", f.killed(), r.point, len(r.flying))
		}
		_, err := f.recruit()
		return err
	case r.retired && err == nil:
		return nil
	default:
		return fmt.Errorf("a relay ended by itself: %s; it said last: %s", r.cmd.ProcessState, r.stderr)
	}
}

func (f *fleet) killed() (n int) {
	for _, kills := range f.kills {
		n += kills
	}
	return n
}

// abandon makes sure that no relay is left.
func (f *fleet) abandon() {
	for _, r := range f.relays {
		r.kill()
	}
	for len(f.relays) > 0 {
		if e := <-f.events; e.ended {
			f.relays = slices.DeleteFunc(f.relays, func(r *relayProcess) bool { return r.process == e.process })
		}
	}
}

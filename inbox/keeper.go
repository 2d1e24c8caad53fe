package inbox

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/semel-go/semel/breaker"
)

// keeper looks after the dependencies of a consumer for all runs of it in this
// process, so that one message at a time tries each, and not one of each run.
type keeper struct {
	in    *Inbox
	gates []*dependency

	shift   sync.Mutex     // held while the first run comes, or the last one goes
	tending sync.WaitGroup // what looks after dependencies

	mu        sync.Mutex // guards what follows; pauses sources while held
	byBreaker map[*breaker.Breaker]*dependency
	runs      map[*run]struct{}
	stop      chan struct{} // closed when the last run goes
	closed    int           // gates that are
	looking   int           // of these, those that have no message to be tried with
}

func newKeeper(in *Inbox, gates []*breaker.Breaker) *keeper {
	k := &keeper{in: in, byBreaker: make(map[*breaker.Breaker]*dependency), runs: make(map[*run]struct{})}
	for _, b := range gates {
		d := newDependency(b, true)
		k.gates, k.byBreaker[b] = append(k.gates, d), d
	}
	return k
}

// of is the dependency behind a breaker.
func (k *keeper) of(b *breaker.Breaker) *dependency {
	k.mu.Lock()
	defer k.mu.Unlock()
	d := k.byBreaker[b]
	if d == nil {
		d = newDependency(b, false)
		k.byBreaker[b] = d
	}
	return d
}

// enter begins to look after what a run needs, until leave.
func (k *keeper) enter(ctx context.Context, r *run) {
	k.shift.Lock()
	defer k.shift.Unlock()
	k.mu.Lock()
	defer k.mu.Unlock()
	first := len(k.runs) == 0
	k.runs[r] = struct{}{}
	r.pausing.set(gateClosed, k.paused())
	if !first {
		return
	}
	k.stop = make(chan struct{})
	for _, d := range k.gates {
		if d.isAway() { // else a message could start before it is noticed
			k.in.lanes.closeGate(d)
		}
		stop := k.stop
		k.tending.Go(func() { k.tendGate(context.WithoutCancel(ctx), d, stop) })
	}
}

func (k *keeper) leave(r *run) {
	k.shift.Lock()
	defer k.shift.Unlock()
	k.mu.Lock()
	delete(k.runs, r)
	last := len(k.runs) == 0
	k.mu.Unlock()
	r.pausing.set(gateClosed, false)
	if last {
		close(k.stop)
		k.tending.Wait()
	}
}

// away names the gates whose dependencies are away.
func (k *keeper) away() (names []string) {
	for _, d := range k.gates {
		if d.isAway() {
			names = append(names, d.breaker.Name())
		}
	}
	return names
}

// start looks after a dependency that is no gate for as long as messages wait for
// it. The run of the task that met it has not ended.
func (k *keeper) start(ctx context.Context, d *dependency) {
	k.mu.Lock()
	stop := k.stop
	k.mu.Unlock()
	k.tending.Go(func() { k.tend(ctx, d, stop) })
}

// tend has messages wait for a dependency, and the others go on.
func (k *keeper) tend(ctx context.Context, d *dependency, stop <-chan struct{}) {
	in, began := k.in, time.Now()
	name := slog.String("dependency", d.breaker.Name())
	in.cfg.Logger.WarnContext(ctx, "dependency is away: messages that need it wait, no attempt is spent; they go on by themselves",
		slog.String("consumer", in.consumer), name, slog.Any("seen_as", d.breaker.Cause()))
	for {
		(&trials{keeper: k, of: d, stop: stop}).run()
		in.lanes.open(d)
		if in.lanes.forsake(d) {
			break
		}
	}
	if !d.isAway() {
		in.cfg.Logger.InfoContext(ctx, "dependency is back: messages that waited for it go on",
			slog.String("consumer", in.consumer), name, slog.Duration("after", time.Since(began)))
	}
}

// tendGate has all messages wait while a dependency is away that the consumer cannot
// do without.
func (k *keeper) tendGate(ctx context.Context, d *dependency, stop <-chan struct{}) {
	for ended := false; !ended; {
		changed := d.breaker.Changed()
		if d.isAway() {
			k.waitOut(ctx, d, stop)
		}
		k.in.lanes.open(d) // a task may have met it a moment before it closed
		select {
		case <-stop:
		case <-changed:
		case <-d.woken:
		}
		select {
		case <-stop:
			ended = true
		default:
		}
	}
}

// waitOut closes a gate until its dependency is back or stop is closed.
func (k *keeper) waitOut(ctx context.Context, d *dependency, stop <-chan struct{}) {
	in, began, err := k.in, time.Now(), d.err()
	name := slog.String("dependency", d.breaker.Name())
	in.lanes.closeGate(d)
	in.counters.outages.Add(1)
	in.counters.paused.Add(1)
	defer in.counters.paused.Add(-1)
	in.cfg.Logger.ErrorContext(ctx, "dependency is away: intake is paused, no attempt is spent; it goes on by itself",
		slog.String("consumer", in.consumer), name, slog.Any("error", err), slog.Any("seen_as", d.breaker.Cause()))
	in.observe(ctx, Event{Kind: Paused, Err: err})
	k.steer(func() { k.closed++ })
	defer k.steer(func() { k.closed-- })
	k.sendBack()

	(&trials{keeper: k, of: d, stop: stop}).run()
	if d.isAway() {
		return
	}
	in.cfg.Logger.InfoContext(ctx, "dependency is back: intake goes on",
		slog.String("consumer", in.consumer), name, slog.Duration("after", time.Since(began)))
	in.observe(ctx, Event{Kind: Resumed, Err: err, Took: time.Since(began)})
}

// paused reports whether the sources stop taking: a gate is closed, and none of those
// that are needs a message to be tried with. It is called with mu held.
func (k *keeper) paused() bool { return k.closed > 0 && k.looking == 0 }

// steer pauses the sources of all runs, or has them go on, as change makes it.
func (k *keeper) steer(change func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	change()
	for r := range k.runs {
		r.pausing.set(gateClosed, k.paused())
	}
}

// sendBack ends the drains that have begun for all that does not run.
func (k *keeper) sendBack() {
	k.mu.Lock()
	runs := slices.Collect(maps.Keys(k.runs))
	k.mu.Unlock()
	for _, r := range runs {
		if r.isDraining() {
			r.giveUp()
		}
	}
}

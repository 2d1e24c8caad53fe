package inbox

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/semel-go/semel/handler"
)

// run is one Run of an inbox: a source, and the deliveries taken from it. It
// is the source's [handler.Sink].
type run struct {
	in     *Inbox
	work   func(*task)    // runs a delivery that got its slot
	pauser handler.Pauser // nil: the source has none
	gate   gate
	budget *budget

	stopping chan struct{} // closed when the drain begins
	drained  sync.WaitGroup

	// Guarded by lanes.mu.
	queued map[*task]struct{} // deliveries that were never started
	held   bool
	aside  []*task // ready, but held

	mu       sync.Mutex // guards what follows
	draining bool
	watched  map[<-chan struct{}]struct{} // channels of revocation that a goroutine waits for
}

// Run handles the messages of src until ctx ends. It blocks.
//
// When ctx ends, Run drains in stages: nothing new is started, and what was
// not started goes back to the source; running handlers may finish for
// [Config.DrainTimeout]; then they are cancelled with [ErrDraining], which is
// no failed attempt; one that ignores this for [Config.WatchdogGrace] is left
// behind. The source acknowledges what was settled, and Run returns nil.
//
// While the database is away, Run pauses the source and spends no attempt.
// Run returns an error when a start check fails, and what the source returns.
// Several Runs of one Inbox share its workers and lanes.
func (in *Inbox) Run(ctx context.Context, src handler.Source) error {
	if src == nil {
		return fmt.Errorf("run consumer %q: source is nil", in.consumer)
	}
	if err := in.start(ctx); err != nil {
		if ctx.Err() != nil {
			return nil // told to end before it had begun: nothing was taken
		}
		return err
	}

	// Handlers outlive ctx: that is what draining means.
	handlers, cancelHandlers := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancelHandlers(nil)
	r := in.newRun(handlers, src)

	tending, stopTending := context.WithCancel(context.WithoutCancel(ctx))
	var helpers sync.WaitGroup
	helpers.Go(func() { r.tend(tending) })

	drained := make(chan struct{})
	helpers.Go(func() {
		select {
		case <-ctx.Done():
			r.drain(ctx)
		case <-r.stopping: // the source gave up
		}
		r.cancelLate(drained, cancelHandlers)
	})

	err := src.Run(ctx, r)
	r.drain(ctx)     // a source that gave up leaves deliveries behind
	r.drained.Wait() // a source that drained has waited already
	close(drained)
	stopTending()
	helpers.Wait()
	if err != nil {
		return fmt.Errorf("run consumer %q: %w", in.consumer, err)
	}
	return nil
}

func (in *Inbox) newRun(handlers context.Context, src handler.Source) *run {
	r := &run{
		in:       in,
		gate:     newGate(),
		budget:   newBudget(in.cfg.MaxInFlight, in.cfg.MaxInFlightBytes),
		stopping: make(chan struct{}),
		queued:   make(map[*task]struct{}),
		watched:  make(map[<-chan struct{}]struct{}),
	}
	r.pauser, _ = src.(handler.Pauser)
	r.work = func(t *task) { r.handle(handlers, t) }
	return r
}

// Deliver implements [handler.Sink].
func (r *run) Deliver(ctx context.Context, d *handler.Delivery) error {
	size := len(d.Message.Payload)
	if err := r.budget.take(ctx, r.stopping, size); err != nil {
		return err
	}
	r.mu.Lock()
	if r.draining {
		r.mu.Unlock()
		r.budget.give(size)
		return ErrDraining
	}
	r.drained.Add(1) // under mu: never after the drain has begun to wait
	r.mu.Unlock()

	t := &task{msg: d.Message, key: laneKey(d.Message), run: r, delivery: d, size: size}
	r.in.lanes.enter(t)

	r.mu.Lock()
	draining := r.draining
	if !draining {
		r.watch(d.Revoked)
	}
	r.mu.Unlock()
	if draining { // it began while t entered, and may have missed it
		r.giveBack(func(*task) bool { return true }, ErrDraining)
	}
	return nil
}

// handle takes a delivery that has a slot to its end.
func (r *run) handle(ctx context.Context, t *task) {
	select {
	case <-t.revoked():
		r.finish(t, ErrRevoked)
	case <-r.stopping:
		r.finish(t, ErrDraining)
	default:
		r.settleThenTell(ctx, t)
	}
	goesBack, cause := r.goingBack(t)
	r.tellReturned(r.in.lanes.end(t, goesBack), cause)
	r.drained.Done()
}

// goingBack says which deliveries go back to the source at the moment t ends,
// and why. Nil: none.
func (r *run) goingBack(t *task) (match func(*task) bool, cause error) {
	select {
	case <-r.stopping:
		return func(*task) bool { return true }, ErrDraining
	default:
	}
	select {
	case <-t.revoked():
		return func(other *task) bool { return other.delivery.Revoked == t.delivery.Revoked }, ErrRevoked
	default:
		return nil, nil
	}
}

// finish tells the source, exactly once.
func (r *run) finish(t *task, err error) {
	tell(t.delivery, err)
	r.budget.give(t.size)
}

// drain begins the drain: what was not started goes back.
func (r *run) drain(ctx context.Context) {
	r.mu.Lock()
	first := !r.draining
	if first {
		r.draining = true
		close(r.stopping)
	}
	r.mu.Unlock()
	if !first {
		return
	}
	r.in.observe(context.WithoutCancel(ctx), Event{Kind: Draining})
	r.giveBack(func(*task) bool { return true }, ErrDraining)
}

// giveBack returns the deliveries that were never started and match.
func (r *run) giveBack(match func(*task) bool, cause error) {
	r.tellReturned(r.in.lanes.sweep(r, match), cause)
}

func (r *run) tellReturned(swept []*task, cause error) {
	for _, t := range swept {
		r.finish(t, cause)
		r.drained.Done()
	}
}

// watch waits for the source to take deliveries back, once for each channel.
// It is called with mu held.
func (r *run) watch(revoked <-chan struct{}) {
	if revoked == nil {
		return
	}
	if _, ok := r.watched[revoked]; ok {
		return
	}
	r.watched[revoked] = struct{}{}
	r.drained.Go(func() {
		select {
		case <-revoked:
		case <-r.stopping:
			return
		}
		r.mu.Lock()
		delete(r.watched, revoked) // first: what comes from now on has a goroutine of its own
		r.mu.Unlock()
		r.giveBack(func(t *task) bool { return t.delivery.Revoked == revoked }, ErrRevoked)
	})
}

// cancelLate cancels the handlers that are still running after the drain time.
func (r *run) cancelLate(drained <-chan struct{}, cancel context.CancelCauseFunc) {
	timer := time.NewTimer(r.in.cfg.DrainTimeout)
	defer timer.Stop()
	select {
	case <-drained:
	case <-timer.C:
		if running, _ := r.in.lanes.counts(); running > 0 {
			r.in.cfg.Logger.Warn("drain time is over: cancelling the handlers that still run",
				slog.String("consumer", r.in.consumer), slog.Int("running", running))
		}
		cancel(ErrDraining)
	}
}

package inbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/semel-go/semel/handler"
)

// run is one Run of an inbox: a source, and the deliveries taken from it. It
// is the source's [handler.Sink].
type run struct {
	in      *Inbox
	work    func(*task) // runs a delivery that got its slot; does not block
	crew    *crew
	pausing *pausing
	gate    gate
	budget  *budget
	tooOld  streak

	onDrain func(context.Context, Event) // nil: another run of the same process tells

	stopping chan struct{} // closed when the drain begins
	hopeless chan struct{} // closed when the drain waits for no message that does not run
	drained  sync.WaitGroup
	ended    chan struct{} // closed when all deliveries are answered
	watchers sync.WaitGroup

	// Guarded by lanes.mu.
	queued      map[*task]struct{} // deliveries that were never started
	aside       []*task            // ready, but held or frozen
	held        bool
	frozen      bool
	lastStarted uint64 // the highest number of a delivery that was started
	lastToStart uint64 // while frozen: up to which number deliveries may still be started

	mu       sync.Mutex // guards what follows
	draining bool
	gaveUp   bool
	watched  map[<-chan struct{}]struct{} // channels of revocation that a goroutine waits for
}

// Run handles the messages of src until ctx ends. It blocks.
//
// When ctx ends, Run drains in stages. What was not started goes back to the
// source, except what came before a message that was: it is handled too, so
// that nothing settled has to come again because of it. All that may take
// [Config.DrainTimeout]; then the rest goes back and running handlers are
// cancelled with [ErrDraining], which is no failed attempt; one that ignores
// this for [Config.WatchdogGrace] is left behind. The source acknowledges what
// was settled, and Run returns nil. If the database or a dependency is away,
// nothing is waited for but handlers that run.
//
// While the database is away, or a dependency of [Config.Gates], Run pauses the
// source and spends no attempt. It also pauses, and does not go on, when many messages in a row are too old (see
// [Config.TooOld]). Beside the source it works the inbox as [Inbox.Work] does.
// Now and then it purges what was handled more than [Config.Retention] ago.
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

	if err := in.checkOrder(src); err != nil {
		return fmt.Errorf("run consumer %q: %w", in.consumer, err)
	}
	beside, stop := context.WithCancel(ctx)
	defer stop()
	var helpers sync.WaitGroup
	helpers.Go(func() { in.purge(beside) })
	var workErr error
	helpers.Go(func() { workErr = in.work(beside, nil) })
	err := in.runSource(ctx, src, in.observe)
	stop()
	helpers.Wait()
	if err != nil {
		err = fmt.Errorf("run consumer %q: %w", in.consumer, err)
	}
	return errors.Join(err, workErr)
}

// runSource handles what a source delivers until ctx ends. Draining, if not nil,
// is told when that begins.
func (in *Inbox) runSource(ctx context.Context, src handler.Source, draining func(context.Context, Event)) error {
	// Handlers outlive ctx: that is what draining means.
	handlers, cancelHandlers := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancelHandlers(nil)
	r := in.newRun(handlers, src)
	r.onDrain = draining
	in.keeper.enter(ctx, r)
	defer in.keeper.leave(r)

	tending, stopTending := context.WithCancel(context.WithoutCancel(ctx))
	var helpers sync.WaitGroup
	helpers.Go(func() { r.tend(tending) })
	helpers.Go(func() {
		select {
		case <-ctx.Done():
			r.drain(ctx)
		case <-r.stopping: // the source gave up
		}
		r.cancelLate(cancelHandlers)
	})

	err := src.Run(ctx, r)
	r.drain(ctx)     // a source that gave up leaves deliveries behind
	r.drained.Wait() // a source that drained has waited already
	close(r.ended)
	stopTending()
	helpers.Wait()
	r.watchers.Wait()
	return err
}

func (in *Inbox) newRun(handlers context.Context, src handler.Source) *run {
	r := &run{
		in:       in,
		pausing:  newPausing(src),
		gate:     newGate(),
		budget:   newBudget(in.cfg.MaxInFlight, in.cfg.MaxInFlightBytes),
		stopping: make(chan struct{}),
		hopeless: make(chan struct{}),
		ended:    make(chan struct{}),
		queued:   make(map[*task]struct{}),
		watched:  make(map[<-chan struct{}]struct{}),
	}
	r.crew = newCrew(r.ended)
	r.work = func(t *task) { r.crew.do(func() { r.handle(handlers, t) }) }
	return r
}

// Deliver implements [handler.Sink].
func (r *run) Deliver(ctx context.Context, d *handler.Delivery) error {
	return r.deliver(ctx, d, &task{msg: d.Message, key: laneKey(d.Message)})
}

// deliver takes the task of a delivery in.
func (r *run) deliver(ctx context.Context, d *handler.Delivery, t *task) error {
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

	t.run, t.delivery, t.size = r, d, size
	r.in.lanes.enter(t)

	r.mu.Lock()
	draining := r.draining
	if !draining {
		r.watch(d.Revoked)
	}
	r.mu.Unlock()
	if draining { // it began while t entered, and may have missed it
		r.tellReturned(r.in.lanes.refreeze(r), ErrDraining)
	}
	return nil
}

// handle takes a delivery that has a slot to its end.
func (r *run) handle(ctx context.Context, t *task) {
	var err error
	select {
	case <-t.revoked():
		err = ErrRevoked
		r.finish(t, err)
	default:
		err = r.settleThenTell(ctx, t)
	}
	goesBack, cause := r.goingBack(t, err)
	r.tellReturned(r.in.lanes.end(t, goesBack), cause)
	r.drained.Done()
}

// goingBack says which deliveries go back to the source at the moment t ends
// with err, and why. Nil: none but those that came too late for a drain.
func (r *run) goingBack(t *task, err error) (match func(*task) bool, cause error) {
	select {
	case <-t.revoked():
		return func(other *task) bool { return other.delivery.Revoked == t.delivery.Revoked }, ErrRevoked
	default:
	}
	if err != nil && t.key != 0 { // what follows it must not go before it
		return func(other *task) bool { return other.key == t.key }, ErrDraining
	}
	return nil, ErrDraining
}

func (r *run) isDraining() bool {
	select {
	case <-r.stopping:
		return true
	default:
		return false
	}
}

// tooLate reports whether a delivery came too late to be started while the run
// drains. It is called with lanes.mu held.
func (r *run) tooLate(t *task) bool { return r.frozen && t.number > r.lastToStart }

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
	if r.onDrain != nil {
		r.onDrain(context.WithoutCancel(ctx), Event{Kind: Draining})
	}
	r.tellReturned(r.in.lanes.freeze(r), ErrDraining)
	if r.in.lanes.anyShut() {
		r.giveUp() // a drain waits for no dependency
	}
}

// giveUp ends the drain for all that does not run: the database or a dependency is
// away, or the drain time is over.
func (r *run) giveUp() {
	r.mu.Lock()
	first := !r.gaveUp
	r.gaveUp = true
	r.mu.Unlock()
	if first {
		close(r.hopeless)
		r.tellReturned(r.in.lanes.thaw(r), ErrDraining)
	}
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
	r.watchers.Go(func() {
		select {
		case <-revoked: // also while draining: what is to be started yet must not be any more
		case <-r.ended:
			return
		}
		r.mu.Lock()
		delete(r.watched, revoked) // first: what comes from now on has a goroutine of its own
		r.mu.Unlock()
		r.giveBack(func(t *task) bool { return t.delivery.Revoked == revoked }, ErrRevoked)
	})
}

// cancelLate cancels the handlers that are still running after the drain time.
func (r *run) cancelLate(cancel context.CancelCauseFunc) {
	timer := time.NewTimer(r.in.cfg.DrainTimeout)
	defer timer.Stop()
	select {
	case <-r.ended:
	case <-timer.C:
		if running, _ := r.in.lanes.counts(); running > 0 {
			r.in.cfg.Logger.Warn("drain time is over: cancelling the handlers that still run",
				slog.String("consumer", r.in.consumer), slog.Int("running", running))
		}
		r.giveUp()
		cancel(ErrDraining)
	}
}

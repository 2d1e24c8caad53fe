package inbox

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-go/semel/dedup"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/internal/jitter"
)

const (
	// pollAtRest is how long a worker that found nothing waits for what another
	// process stores.
	pollAtRest = time.Second

	// lockedDelay is how long it waits at least: what is ready and was not taken is
	// locked by somebody.
	lockedDelay = 20 * time.Millisecond

	// gather is how long it waits for more between two looks that were asked for.
	gather = 5 * time.Millisecond

	// takeAtOnce bounds the rows that one statement takes.
	takeAtOnce = 100
)

// worker is the source of the messages in the inbox.
type worker struct {
	in    *Inbox
	owner pgtype.UUID // of the leases; new for each worker, so that none mistakes another's for its own

	mu       sync.Mutex // guards what follows
	held     map[dedup.ID]*stored
	returned []dedup.ID
	paused   bool

	changed chan struct{} // one place: something of the above did
}

func newWorker(in *Inbox) *worker {
	return &worker{in: in, owner: newOwner(), held: make(map[dedup.ID]*stored), changed: make(chan struct{}, 1)}
}

// Pause implements [handler.Pauser].
func (w *worker) Pause() { w.pause(true) }

// Resume implements [handler.Pauser].
func (w *worker) Resume() { w.pause(false) }

func (w *worker) pause(paused bool) {
	w.mu.Lock()
	w.paused = paused
	w.mu.Unlock()
	w.in.wakeWorker()
}

func (w *worker) signal() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// wakeWorker makes the worker look at once. Another process's finds out by
// itself.
func (in *Inbox) wakeWorker() {
	select {
	case in.wake <- struct{}{}:
	default:
	}
}

// Run implements [handler.Source]: it takes what is ready until ctx ends, then
// waits for what it took and gives back what was not started.
func (w *worker) Run(ctx context.Context, sink handler.Sink) error {
	r, ok := sink.(*run)
	if !ok {
		return fmt.Errorf("work the inbox of consumer %q: the sink is not the engine's", w.in.consumer)
	}
	var keeping sync.WaitGroup
	leases, stop := context.WithCancel(context.WithoutCancel(ctx))
	keeping.Go(func() { w.keep(leases) })
	w.takeAll(ctx, r)
	for w.out() > 0 {
		<-w.changed
	}
	stop()
	keeping.Wait()
	w.giveBack(context.WithoutCancel(ctx))
	return nil
}

// takeAll takes messages and delivers them, until ctx ends.
func (w *worker) takeAll(ctx context.Context, r *run) {
	in := w.in
	trouble := jitter.New(in.cfg.QuickDelay, in.cfg.OutageMaxDelay)
	timer := time.NewTimer(0)
	defer timer.Stop()
	var looked, logged, resumed time.Time
	more := false // than there was room for
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-in.wake:
			if wait := gather - time.Since(looked); wait > 0 { // who stores one after the other is answered once
				timer.Reset(wait)
				continue
			}
		case <-w.changed:
			if !more || w.room() < min(in.cfg.WorkAhead/4, takeAtOnce) { // not a statement for each that ends
				continue
			}
		}
		timer.Reset(pollAtRest)
		room := w.room()
		if room == 0 { // something ends, or it goes on: then there is a signal
			continue
		}
		if time.Since(resumed) > resumeEvery {
			in.resumeStuck(ctx)
			resumed = time.Now()
		}
		looked = time.Now()
		w.giveBack(ctx)
		rows, due, err := w.take(ctx, room)
		if err != nil {
			if ctx.Err() != nil {
				return
			}
			if time.Since(logged) > refusalEvery {
				logged = time.Now()
				in.cfg.Logger.WarnContext(ctx, "looking into the inbox went wrong; it is tried again",
					slog.String("consumer", in.consumer), slog.Any("error", err))
			}
			timer.Reset(trouble.NextBackOff())
			continue
		}
		if len(rows) > 0 {
			in.observe(ctx, Event{Kind: Taken, Messages: len(rows)})
		}
		delivered, err := w.deliverAll(ctx, r, rows)
		if err != nil && time.Since(logged) > refusalEvery {
			logged = time.Now()
			in.cfg.Logger.WarnContext(ctx, "messages of the inbox cannot be read; they are tried again",
				slog.String("consumer", in.consumer), slog.Any("error", err))
		}
		if err != nil && delivered == 0 {
			timer.Reset(trouble.NextBackOff())
			continue
		}
		trouble.Reset()
		if more = len(rows) == room; more {
			due = 0
		}
		timer.Reset(due)
	}
}

// room is how many messages may be taken now.
func (w *worker) room() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.paused {
		return 0
	}
	return min(max(w.in.cfg.WorkAhead-len(w.held), 0), takeAtOnce)
}

func (w *worker) out() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.held)
}

// take leases what is ready, and says when to look again. A lease that a crash of
// the server loses costs nothing but a second look, so its commit does not wait for
// the disk. It outlives ctx: what the server leased and nobody here knows of would
// stay with this process until the lease is over, and be a suspect then.
func (w *worker) take(ctx context.Context, n int) (taken []*stored, due time.Duration, err error) {
	in := w.in
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), in.cfg.StatementTimeout)
	defer cancel()
	b := &pgx.Batch{}
	b.Queue("begin isolation level read committed")
	b.Queue("select set_config('synchronous_commit', 'off', true)")
	b.Queue(in.rows.take, in.consumerID, w.owner, interval(in.cfg.Lease), n, int64(in.cfg.MaxInFlightBytes)).Query(func(rows pgx.Rows) (err error) {
		taken, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (*stored, error) {
			s := &stored{owner: w.owner}
			return s, s.scan(row)
		})
		return err
	})
	due = pollAtRest
	b.Queue(in.rows.nextDue, in.consumerID).QueryRow(func(row pgx.Row) error {
		var until pgtype.Interval
		if err := row.Scan(&until); err != nil || !until.Valid {
			return err
		}
		due = min(max(duration(until), lockedDelay), pollAtRest)
		return nil
	})
	b.Queue("commit")
	conn, err := in.pool.Acquire(ctx)
	if err != nil {
		return nil, 0, err
	}
	defer conn.Release() // one with an open transaction is thrown away
	if err := conn.Conn().SendBatch(ctx, b).Close(); err != nil {
		return nil, 0, err
	}
	return taken, due, nil
}

// deliverAll hands messages to the engine, and returns how many it could, and what
// kept it from the last that it could not. The lease of one that waits for those
// before it is renewed as well.
func (w *worker) deliverAll(ctx context.Context, r *run, rows []*stored) (delivered int, unreadable error) {
	w.mu.Lock()
	for _, s := range rows {
		w.held[s.id] = s
	}
	w.mu.Unlock()
	for _, s := range rows {
		msg, letter, err := w.in.read(ctx, s)
		switch {
		case err == nil:
			delivered++
			w.deliver(ctx, r, s, w.in.taskOf(s, msg, letter))
		case ctx.Err() != nil: // it drains
			w.ended(s, true)
		default:
			unreadable = err
			w.in.leaveAlone(ctx, s, err)
			w.ended(s, false)
		}
	}
	return delivered, unreadable
}

// deliver hands a message to the engine.
func (w *worker) deliver(ctx context.Context, r *run, s *stored, t *task) {
	d := &handler.Delivery{
		Message:  t.msg,
		Settled:  func() { w.ended(s, false) },
		Returned: func(error) { w.ended(s, true) },
	}
	if err := r.deliver(ctx, d, t); err != nil { // it drains
		w.ended(s, true)
	}
}

// ended notes that the engine is through with a message. It may have been taken
// once more meanwhile, when it was put off for a moment only.
func (w *worker) ended(s *stored, returned bool) {
	w.mu.Lock()
	if w.held[s.id] == s {
		delete(w.held, s.id)
	}
	if returned {
		w.returned = append(w.returned, s.id)
	}
	w.mu.Unlock()
	w.signal()
}

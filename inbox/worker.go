package inbox

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-go/semel/dedup"
	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/internal/jitter"
)

const (
	// pollAtRest is how long a worker that found nothing waits for what another
	// process stores.
	pollAtRest = time.Second

	// takeAtOnce bounds the rows that one statement takes.
	takeAtOnce = 100

	// unreadableDelay is how long a row is left alone that cannot be read.
	unreadableDelay = 10 * time.Minute

	// resumeEvery is how often a worker looks for messages that wait for nobody.
	resumeEvery = 10 * time.Minute
)

// worker is the source of the messages in the inbox.
type worker struct {
	in    *Inbox
	owner pgtype.UUID // of the leases; new for each worker, so that none mistakes another's for its own

	mu       sync.Mutex // guards what follows
	held     map[dedup.ID]struct{}
	returned []dedup.ID
	paused   bool

	changed chan struct{} // one place: something of the above did
}

func newWorker(in *Inbox) *worker {
	return &worker{in: in, owner: newOwner(), held: make(map[dedup.ID]struct{}), changed: make(chan struct{}, 1)}
}

func newOwner() pgtype.UUID {
	owner := pgtype.UUID{Valid: true}
	_, _ = rand.Read(owner.Bytes[:]) // never fails
	return owner
}

// Pause implements [handler.Pauser].
func (w *worker) Pause() { w.pause(true) }

// Resume implements [handler.Pauser].
func (w *worker) Resume() { w.pause(false) }

func (w *worker) pause(paused bool) {
	w.mu.Lock()
	w.paused = paused
	w.mu.Unlock()
	w.signal()
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
	var logged, resumed time.Time
	for {
		worthwhile := 1
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-in.wake:
		case <-w.changed:
			worthwhile = in.cfg.WorkAhead / 4 // not a statement for each that ends
		}
		room := w.room()
		if room == 0 || room < min(worthwhile, takeAtOnce) {
			timer.Reset(pollAtRest)
			continue
		}
		if time.Since(resumed) > resumeEvery && in.resumeStuck(ctx) == nil {
			resumed = time.Now()
		}
		w.giveBack(ctx)
		rows, err := w.take(ctx, room)
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
		trouble.Reset()
		if len(rows) > 0 {
			in.observe(ctx, Event{Kind: Taken, Messages: len(rows)})
		}
		for _, s := range rows {
			w.deliver(ctx, r, s)
		}
		if len(rows) == room {
			timer.Reset(0)
		} else {
			timer.Reset(w.untilDue(ctx))
		}
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

// take leases what is ready.
func (w *worker) take(ctx context.Context, n int) ([]*stored, error) {
	in := w.in
	ctx, cancel := context.WithTimeout(ctx, in.cfg.StatementTimeout)
	defer cancel()
	rows, err := in.pool.Query(ctx, in.rows.take, in.consumerID, w.owner, interval(in.cfg.Lease), n, int64(in.cfg.MaxInFlightBytes))
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (*stored, error) {
		s := &stored{owner: w.owner}
		return s, s.scan(row)
	})
}

// untilDue is how long the worker may rest.
func (w *worker) untilDue(ctx context.Context) time.Duration {
	in := w.in
	ctx, cancel := context.WithTimeout(ctx, in.cfg.StatementTimeout)
	defer cancel()
	var due pgtype.Interval
	if err := in.pool.QueryRow(ctx, in.rows.nextDue, in.consumerID).Scan(&due); err != nil || !due.Valid {
		return pollAtRest // what is wrong shows at the next look
	}
	return min(max(duration(due), time.Millisecond), pollAtRest)
}

// deliver hands a message to the engine.
func (w *worker) deliver(ctx context.Context, r *run, s *stored) {
	in := w.in
	letter, err := in.letterOf(ctx, s)
	if err != nil {
		in.leaveAlone(ctx, s, err)
		return
	}
	t := in.taskOf(s, letter)
	w.mu.Lock()
	w.held[s.id] = struct{}{}
	w.mu.Unlock()
	d := &handler.Delivery{
		Message:  t.msg,
		Settled:  func() { w.ended(s.id, false) },
		Returned: func(error) { w.ended(s.id, true) },
	}
	if err := r.deliver(ctx, d, t); err != nil { // it drains
		w.ended(s.id, true)
	}
}

// ended notes that the engine is through with a message.
func (w *worker) ended(id dedup.ID, returned bool) {
	w.mu.Lock()
	delete(w.held, id)
	if returned {
		w.returned = append(w.returned, id)
	}
	w.mu.Unlock()
	w.signal()
}

// errUnreadable is what a row of the inbox is left with that cannot be handled
// as it stands.
var errUnreadable = errors.New("the message cannot be read")

// letterOf loads the dead letter that holds the message. Nil: the row does.
func (in *Inbox) letterOf(ctx context.Context, s *stored) (*dlq.Letter, error) {
	if s.letterID == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, in.cfg.StatementTimeout)
	defer cancel()
	letter, err := in.letters.Load(ctx, in.pool, s.letterID)
	switch {
	case err != nil:
		return nil, err
	case !letter.RedactedAt.IsZero():
		return nil, fmt.Errorf("%w: the payload of dead letter %d was deleted", errUnreadable, s.letterID)
	case letter.ConsumerID != in.consumerID:
		return nil, fmt.Errorf("%w: dead letter %d is another consumer's", errUnreadable, s.letterID)
	}
	return letter, nil
}

// leaveAlone puts a row off that cannot be read, and says so in it. An outage
// is over at the next look.
func (in *Inbox) leaveAlone(ctx context.Context, s *stored, cause error) {
	delay := time.Second
	if errors.Is(cause, errUnreadable) || errors.Is(cause, dlq.ErrNotFound) {
		delay = unreadableDelay
		in.cfg.Logger.ErrorContext(ctx, "a message of the inbox cannot be read and is left alone: a person must decide",
			slog.String("consumer", in.consumer), slog.Int64("seq", s.seq), slog.Any("error", cause))
	}
	t := &task{stored: s, attempts: s.attempts, later: &postponement{delay: delay, errors: dlq.Chain(cause)}}
	t.failures.first = time.Now().Add(-s.failing)
	in.putOff(ctx, t)
}

// resumeStuck makes ready what waits for nobody.
func (in *Inbox) resumeStuck(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, in.cfg.StatementTimeout)
	defer cancel()
	tag, err := in.pool.Exec(ctx, in.rows.resumeStuck, in.consumerID)
	if err == nil && tag.RowsAffected() > 0 {
		in.cfg.Logger.WarnContext(ctx, "messages waited in the inbox behind others that are not there; they go on",
			slog.String("consumer", in.consumer), slog.Int64("keys", tag.RowsAffected()))
	}
	return err
}

// keep renews the leases of what is held.
func (w *worker) keep(ctx context.Context) {
	ticker := time.NewTicker(w.in.cfg.Lease / 3)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		w.mu.Lock()
		ids := make([]dedup.ID, 0, len(w.held))
		for id := range w.held {
			ids = append(ids, id)
		}
		w.mu.Unlock()
		if len(ids) > 0 {
			w.in.changeLeases(ctx, w.in.rows.renew, w.in.consumerID, ids, w.owner, interval(w.in.cfg.Lease)) // what cannot be renewed runs out
		}
	}
}

// giveBack releases what the engine returned.
func (w *worker) giveBack(ctx context.Context) {
	w.mu.Lock()
	ids := w.returned
	w.returned = nil
	w.mu.Unlock()
	if len(ids) > 0 {
		w.in.release(ctx, w.owner, ids...)
	}
}

// release makes ready what this process held and did not handle.
func (in *Inbox) release(ctx context.Context, owner pgtype.UUID, ids ...dedup.ID) {
	in.changeLeases(context.WithoutCancel(ctx), in.rows.release, in.consumerID, ids, owner)
}

func (in *Inbox) changeLeases(ctx context.Context, sql string, args ...any) {
	ctx, cancel := context.WithTimeout(ctx, in.cfg.StatementTimeout)
	defer cancel()
	if _, err := in.pool.Exec(ctx, sql, args...); err != nil && ctx.Err() == nil {
		in.cfg.Logger.WarnContext(ctx, "leases of the inbox could not be changed; they run out by themselves",
			slog.String("consumer", in.consumer), slog.Any("error", err))
	}
}

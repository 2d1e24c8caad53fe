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
	"github.com/semel-go/semel/internal/msgrow"
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

	// unreadableDelay is how long a row is left alone that cannot be read.
	unreadableDelay = 10 * time.Minute

	// resumeEvery is how often a worker looks for messages that wait for nobody.
	resumeEvery = 10 * time.Minute

	// resumeAtOnce bounds the rows that one statement makes ready.
	resumeAtOnce = 5000
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

// errUnreadable is what a row of the inbox is left with that cannot be handled
// as it stands.
var errUnreadable = errors.New("the message cannot be read")

// read returns the message of a row, and the dead letter that holds it. Nil: the
// row does.
func (in *Inbox) read(ctx context.Context, s *stored) (*handler.Message, *dlq.Letter, error) {
	if s.letterID == 0 {
		msg, err := in.decoded(ctx, s)
		return msg, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, in.cfg.StatementTimeout)
	defer cancel()
	letter, err := in.load(ctx, s.letterID)
	switch {
	case err != nil:
		return nil, nil, err
	case !letter.RedactedAt.IsZero():
		return nil, nil, fmt.Errorf("%w: the payload of dead letter %d was deleted", errUnreadable, s.letterID)
	case letter.ConsumerID != in.consumerID:
		return nil, nil, fmt.Errorf("%w: dead letter %d is another consumer's", errUnreadable, s.letterID)
	}
	return letter.Message, letter, nil
}

// leaveAlone puts a row off that cannot be read, and says so in it. An outage
// is over at the next look.
func (in *Inbox) leaveAlone(ctx context.Context, s *stored, cause error) {
	delay := time.Second
	if errors.Is(cause, errUnreadable) || errors.Is(cause, dlq.ErrNotFound) || errors.Is(cause, handler.ErrCodec) && !msgrow.IsAway(cause) {
		delay = unreadableDelay
		in.cfg.Logger.ErrorContext(ctx, "a message of the inbox cannot be read and is left alone: a person must decide",
			slog.String("consumer", in.consumer), slog.Int64("seq", s.seq), slog.Any("error", cause))
	}
	t := &task{stored: s, attempts: s.attempts, later: &postponement{delay: delay, errors: dlq.Chain(cause)}}
	t.failures.first = time.Now().Add(-s.failing)
	in.putOff(ctx, t)
}

// resumeStuck makes ready what waits for nobody. Where that goes wrong it is for
// the next time: what can be taken does not wait for it.
func (in *Inbox) resumeStuck(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, in.cfg.StatementTimeout)
	defer cancel()
	tag, err := in.pool.Exec(ctx, in.rows.unparkSettled, in.consumerID)
	if err == nil && tag.RowsAffected() > 0 {
		in.cfg.Logger.WarnContext(ctx, "messages held their keys for dead letters that are settled, or not there; they go",
			slog.String("consumer", in.consumer), slog.Int64("messages", tag.RowsAffected()))
	}
	var resumed int64
	for more := true; more; {
		sql, args := in.rows.resumeStuck, []any{in.consumerID}
		if in.cfg.Ordering == PerKey {
			sql, args = in.rows.resumeBehind, append(args, resumeAtOnce)
		}
		tag, err := in.pool.Exec(ctx, sql, args...)
		resumed += tag.RowsAffected()
		more = err == nil && in.cfg.Ordering == PerKey && tag.RowsAffected() == resumeAtOnce
	}
	if resumed > 0 {
		in.cfg.Logger.WarnContext(ctx, "messages waited in the inbox behind others that are not there, or whose order is not kept any more; they go on",
			slog.String("consumer", in.consumer), slog.Int64("messages", resumed))
	}
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
			w.in.renew(ctx, w.owner, ids...) // what cannot be renewed runs out
		}
	}
}

// renew keeps messages for who holds them. What is being handled may be locked, and
// is passed over; so one that is about to be handled again is renewed before.
func (in *Inbox) renew(ctx context.Context, owner pgtype.UUID, ids ...dedup.ID) {
	in.changeLeases(ctx, in.rows.renew, in.consumerID, uuids(ids), owner, interval(in.cfg.Lease))
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
	in.changeLeases(context.WithoutCancel(ctx), in.rows.release, in.consumerID, uuids(ids), owner)
}

// uuids are ids as any exec mode can send them: a list of another type has no
// encoding where the server does not tell of what type it is.
func uuids(ids []dedup.ID) []pgtype.UUID {
	list := make([]pgtype.UUID, len(ids))
	for i, id := range ids {
		list[i] = pgtype.UUID{Bytes: id, Valid: true}
	}
	return list
}

func (in *Inbox) changeLeases(ctx context.Context, sql string, args ...any) {
	ctx, cancel := context.WithTimeout(ctx, in.cfg.StatementTimeout)
	defer cancel()
	if _, err := in.pool.Exec(ctx, sql, args...); err != nil && ctx.Err() == nil {
		in.cfg.Logger.WarnContext(ctx, "leases of the inbox could not be changed; they run out by themselves",
			slog.String("consumer", in.consumer), slog.Any("error", err))
	}
}

package inbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/internal/jitter"
	"github.com/semel-go/semel/internal/msgrow"
)

// ErrFull is returned by [Inbox.Store] when the inbox holds as many messages as
// [Config.MaxStored] or [Config.MaxStoredPerKey] allow. Nothing was stored.
var ErrFull = errors.New("inbox is full")

// postponement is the decision that a message is handled later. It stands until
// it is written.
type postponement struct {
	delay   time.Duration
	errors  []string       // of the attempt that failed
	payload msgrow.Payload // as it is stored, see [Inbox.encode]
}

// Store accepts a message now, to be handled later by [Inbox.Work] or
// [Inbox.Run], here or in another process. It waits for no other message and no
// worker.
//
// A nil error means that the message is settled and may be acknowledged: Stored,
// or Duplicate, Mismatch or Dead as with [Inbox.Process]. An error means that it
// must come again: ctx ended, the database is away ([ErrOutage]), the inbox is
// full ([ErrFull]), or a start check failed. It is safe for concurrent use.
func (in *Inbox) Store(ctx context.Context, msg *handler.Message) (handler.Outcome, error) {
	if msg == nil {
		return 0, fmt.Errorf("store message for consumer %q: %w", in.consumer, errBadMessage)
	}
	if err := in.start(ctx); err != nil {
		return 0, err
	}
	t := &task{msg: msg, later: &postponement{}}
	if v := in.identify(ctx, t); v.kind == stopped {
		return 0, fmt.Errorf("store message %.255q for consumer %q: %w", msg.ID, in.consumer, v.err)
	} else if v.kind == permanent {
		in.bury(t, reasonOf(v.err), v.err)
	}
	outcome, err := in.storeUntilSettled(ctx, t)
	if err != nil {
		return 0, fmt.Errorf("store message %.255q for consumer %q: %w", msg.ID, in.consumer, err)
	}
	in.counters.outcomes[outcome].Add(1)
	return outcome, nil
}

// storeUntilSettled takes a message to the inbox, or to the dead letters, without
// a lane and a worker: it waits for no handler.
func (in *Inbox) storeUntilSettled(ctx context.Context, t *task) (handler.Outcome, error) {
	patience := jitter.New(in.cfg.QuickDelay, in.cfg.QuickMaxDelay)
	for tries := 1; ; tries++ {
		v := in.step(ctx, t)
		if v.kind == elsewhere && t.buried == nil {
			v = in.inOtherHandsAlready(ctx, t)
		}
		switch v.kind {
		case settled:
			return v.outcome, nil
		case stopped, full:
			return 0, v.err
		case permanent:
			if t.buried == nil {
				in.bury(t, reasonOf(v.err), v.err)
			} else {
				t.buried.lessen(v.err)
			}
		case away, failed:
			if err := in.probe(ctx); err != nil || tries > in.cfg.QuickAttempts {
				return 0, outageError(v.err, err)
			}
		}
		if tries > maxReruns {
			return 0, fmt.Errorf("%w: after %d tries: %w", ErrOutage, tries, v.err)
		}
		timer := time.NewTimer(patience.NextBackOff())
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return 0, context.Cause(ctx)
		}
	}
}

// inOtherHandsAlready looks at a message that somebody has in hand: a worker, most likely,
// whose handler may run for long. If its row is committed it was accepted before, whatever
// becomes of that; if not, it is waited for.
func (in *Inbox) inOtherHandsAlready(ctx context.Context, t *task) verdict {
	seen, err := in.look(ctx, t)
	switch {
	case err != nil:
		return in.judgeOwn(ctx, err)
	case !seen.Found:
		return verdict{kind: elsewhere}
	default:
		return in.known(ctx, t, seen)
	}
}

// postpone writes the decision that a message is handled later.
func (in *Inbox) postpone(ctx context.Context, t *task) verdict {
	if t.stored != nil {
		return in.putOff(ctx, t)
	}
	if err := in.checkRoom(ctx); err != nil {
		if errors.Is(err, ErrFull) {
			return verdict{kind: full, err: err}
		}
		return in.judgeOwn(ctx, err)
	}
	if err := in.encode(ctx, t); err != nil {
		return in.judgeOwn(ctx, err)
	}
	if !in.ordered(t) {
		return in.storeAtOnce(ctx, t)
	}
	tx, v := in.claim(ctx, t, handler.Stored)
	if tx == nil {
		return v
	}
	defer tx.release()
	if t.row == rowRefused {
		in.rollback(ctx, tx)
		return verdict{kind: full, err: in.tooManyOfKey(t)}
	}
	in.observe(ctx, Event{Kind: Storing, Message: t.msg, Attempt: t.attempts})
	if v = in.commit(ctx, tx, t, handler.Stored); v.kind == settled && t.row == rowReady && t.later.delay == 0 {
		in.wakeWorker()
	}
	return v
}

// storeAtOnce stores a message that waits for no other, in one statement.
func (in *Inbox) storeAtOnce(ctx context.Context, t *task) verdict {
	conn, err := in.acquire(ctx)
	if err != nil {
		return in.judgeOwn(ctx, fmt.Errorf("acquire a connection from the pool: %w", err))
	}
	in.observe(ctx, Event{Kind: Storing, Message: t.msg, Attempt: t.attempts})
	timed, cancel := context.WithTimeout(ctx, in.cfg.LockTimeout+in.cfg.StatementTimeout)
	defer cancel()
	tag, err := conn.Exec(timed, in.rows.storeAtOnce, in.storeAtOnceArgs(t)...)
	conn.Release()
	switch {
	case err != nil && ctx.Err() == nil && sqlState(err) == "": // no answer: it may be stored
		return doubt(t, fmt.Errorf("store message: %w", err))
	case err != nil:
		return in.judgeClaim(ctx, fmt.Errorf("store message: %w", err))
	case tag.RowsAffected() == 0:
		seen, err := in.look(ctx, t)
		if err != nil {
			return in.judgeOwn(ctx, err)
		}
		return in.known(ctx, t, seen)
	}
	in.observe(ctx, Event{Kind: Committed, Message: t.msg, Attempt: t.attempts})
	if t.later.delay == 0 {
		in.wakeWorker()
	}
	return verdict{kind: settled, outcome: handler.Stored}
}

func (in *Inbox) tooManyOfKey(t *task) error {
	return fmt.Errorf("%w: %d messages of key %.64q wait in it (MaxStoredPerKey)", ErrFull, in.cfg.MaxStoredPerKey, printable(string(t.msg.Key)))
}

// newRow is a message as it is to be stored. Letter is its dead letter, 0 if it
// has none.
func (in *Inbox) newRow(t *task, letter int64) newRow {
	r := newRow{letter: pgtype.Int8{Int64: letter, Valid: letter != 0}, maxPerKey: in.cfg.MaxStoredPerKey}
	if t.later != nil {
		r.delay, r.errors, r.payload = t.later.delay, storable(t.later.errors), t.later.payload
	}
	if letter != 0 || r.maxPerKey < 0 || !in.ordered(t) {
		r.maxPerKey = 0 // a place that must be kept, or that nothing waits behind
	}
	return r
}

type newRow struct {
	payload   msgrow.Payload
	letter    pgtype.Int8 // it is parked, and this holds it
	delay     time.Duration
	errors    []string
	maxPerKey int
	claimed   bool // only if this very transaction has claimed it
}

// rowState is what became of a row that was to be inserted.
type rowState int8

const (
	rowRefused rowState = iota // the key holds too many
	rowReady                   // now, or after its delay
	rowWaits                   // behind others of its key, or for a person
)

// insert stores a message behind those of its key.
func (in *Inbox) insert(ctx context.Context, tx pgx.Tx, t *task, r newRow) error {
	ctx, cancel := context.WithTimeout(ctx, in.cfg.StatementTimeout+in.cfg.LockTimeout)
	defer cancel()
	b := &pgx.Batch{}
	in.queueStore(b, t, r)
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return fmt.Errorf("store message %.64q: %w", t.msg.ID, err)
	}
	return nil
}

// queueStore queues on b what insert does; what becomes of the row stands in t
// then.
func (in *Inbox) queueStore(b *pgx.Batch, t *task, r newRow) {
	key := keyHash(t.msg.Key)
	if key.Valid {
		in.rows.queueLock(b, in.consumerID, key)
	}
	t.row = rowRefused
	b.Queue(in.rows.store, in.storeArgs(t, key, r)...).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			var ready bool
			if err := rows.Scan(&ready); err != nil {
				return err
			}
			if t.row = rowWaits; ready {
				t.row = rowReady
			}
		}
		return rows.Err()
	})
}

func (in *Inbox) storeArgs(t *task, key pgtype.Int8, r newRow) []any {
	own := append(in.firstArgs(t, key, r), in.ordered(t), int64(r.maxPerKey), r.letter)
	msg := t.msg
	if r.letter.Valid { // it holds the rest
		msg, r.payload = &handler.Message{Key: t.msg.Key}, msgrow.Payload{}
	}
	var a msgrow.Alterations
	return append(append(own, a.Values(msg, r.payload)...), r.claimed)
}

func (in *Inbox) storeAtOnceArgs(t *task) []any {
	r := in.newRow(t, 0)
	var a msgrow.Alterations
	args := append(in.firstArgs(t, keyHash(t.msg.Key), r), a.Values(t.msg, r.payload)...)
	return append(args, t.identity.text, in.storeLimits.Lock())
}

// firstArgs are the first eight of what is stored.
func (in *Inbox) firstArgs(t *task, key pgtype.Int8, r newRow) []any {
	return []any{in.consumerID, key, t.identity.id, t.identity.fingerprint, t.attempts, t.failing(), r.errors, interval(r.delay)}
}

// storable are errors as the database takes them: what a handler got as an answer
// may be anything.
func storable(errs []string) []string {
	var a msgrow.Alterations
	return a.Texts("errors", errs)
}

// failing is for how long attempts have failed. NULL: none has.
func (t *task) failing() pgtype.Interval {
	if t.attempts == 0 {
		return pgtype.Interval{}
	}
	return interval(time.Since(t.failures.first))
}

// putOff writes when a message of the inbox is handled again.
func (in *Inbox) putOff(ctx context.Context, t *task) verdict {
	ctx = context.WithoutCancel(ctx)
	timed, cancel := context.WithTimeout(ctx, in.cfg.StatementTimeout)
	defer cancel()
	_, err := in.pool.Exec(timed, in.rows.retry, in.consumerID, t.stored.id, t.stored.owner,
		interval(t.later.delay), t.attempts, t.failing(), storable(t.later.errors))
	if err != nil {
		return in.judgeOwn(ctx, fmt.Errorf("put message off: %w", err))
	}
	return verdict{kind: settled, outcome: handler.Stored}
}

// notYet ends an attempt that found another message of its key before it.
func (in *Inbox) notYet(ctx context.Context, t *task) verdict {
	if t.stored == nil {
		t.later = &postponement{}
		return in.postpone(ctx, t)
	}
	return in.inTx(context.WithoutCancel(ctx), func(ctx context.Context, tx pgx.Tx) (handler.Outcome, error) {
		b := &pgx.Batch{}
		in.rows.queueLock(b, in.consumerID, t.stored.key)
		b.Queue(in.rows.putBehind, in.consumerID, t.stored.id, t.stored.owner)
		return handler.Stored, tx.SendBatch(ctx, b).Close()
	})
}

// postponed decides that the next attempt is made from the inbox.
func (in *Inbox) postponed(ctx context.Context, t *task, delay time.Duration, cause error) {
	t.later = &postponement{delay: delay, errors: errorChain(cause)}
	in.cfg.Logger.WarnContext(ctx, "attempt failed: the message waits in the inbox for the next one", in.attrs(t,
		slog.Int("attempt", t.attempts), slog.Duration("retry_in", delay), slog.Any("error", cause))...)
	in.observe(ctx, Event{Kind: AttemptFailed, Message: t.msg, Attempt: t.attempts, Err: cause, Delay: delay})
}

package inbox

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"runtime/debug"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel/dedup"
	"github.com/semel-go/semel/handler"
)

// attempt runs a message once: claim and BEGIN in one round trip, the handler,
// COMMIT. Each attempt has a fresh transaction, and nothing of a failed one is
// ever committed.
func (in *Inbox) attempt(ctx context.Context, t *task) verdict {
	if in.cfg.Prepare != nil {
		if v := in.prepare(ctx, t); v.kind != 0 {
			return v
		}
	}
	if in.journaledEarly(t) {
		if err := in.beginJournal(ctx, t); err != nil {
			return in.judgeOwn(ctx, err)
		}
		defer in.endJournal(ctx, t)
	}
	tx, v := in.claim(ctx, t, handler.Processed)
	if tx == nil {
		return v
	}
	if !t.forgotten.IsZero() {
		in.rollback(ctx, tx)
		tx.release()
		return in.refuse(ctx, t)
	}
	if t.waits {
		in.rollback(ctx, tx)
		tx.release()
		return in.notYet(ctx, t)
	}
	if t.stored != nil && !in.ordered(t) && t.gone {
		in.rollback(ctx, tx)
		tx.release()
		return inOtherHands()
	}
	in.streakOf(t).end()
	in.observe(ctx, Event{Kind: Claimed, Message: t.msg, Attempt: t.attempts + 1})

	result := in.call(ctx, tx, t)
	if result.abandoned { // the connection went with the handler
		return in.judge(ctx, result)
	}
	v, result = in.finish(ctx, tx, t, result)
	tx.release() // before judge, which may look at the database on another connection
	if result.err != nil {
		return in.judge(ctx, result)
	}
	return v
}

// finish commits what the handler did, or rolls it back.
func (in *Inbox) finish(ctx context.Context, tx *claimedTx, t *task, result callResult) (verdict, callResult) {
	if result.err == nil {
		result.err = tx.whole()
	}
	if result.err != nil {
		result.connLost = tx.conn.Conn().IsClosed()
		in.rollback(ctx, tx)
		return verdict{}, result
	}
	in.observe(ctx, Event{Kind: Handled, Message: t.msg, Attempt: t.attempts + 1})
	outcome := tx.cause.Outcome()
	if outcome != handler.Processed {
		if err := in.endAs(ctx, tx, t, outcome); err != nil {
			in.rollback(ctx, tx)
			return in.judgeOwn(context.WithoutCancel(ctx), err), result
		}
	}
	if t.stored != nil {
		if err := in.leave(ctx, tx, t); err != nil {
			in.rollback(ctx, tx)
			return in.judgeOwn(context.WithoutCancel(ctx), err), result
		}
		if t.gone {
			in.rollback(ctx, tx)
			return inOtherHands(), result
		}
	}
	return in.commit(ctx, tx, t, outcome), result
}

// endAs writes the outcome that only the handler knew, in its transaction.
func (in *Inbox) endAs(ctx context.Context, tx *claimedTx, t *task, outcome handler.Outcome) error {
	tx.timebox(in.cfg.StatementTimeout)
	defer tx.untimed()
	return in.store.End(context.WithoutCancel(ctx), tx, in.consumerID, t.identity.id, outcome)
}

// claimedTx is a transaction that owns a message, on its connection.
type claimedTx struct {
	pgx.Tx
	conn   *pgxpool.Conn
	socket net.Conn // of conn; nil once it was released
	call   guardedCall
	cause  handler.Cause
}

// claim begins a transaction and claims the message in the same round trip. It
// returns no transaction when the message is not ours to handle, and the
// verdict that follows.
func (in *Inbox) claim(ctx context.Context, t *task, outcome handler.Outcome) (*claimedTx, verdict) {
	conn, err := in.acquire(ctx)
	if err != nil {
		return nil, in.judgeOwn(ctx, fmt.Errorf("acquire a connection from the pool: %w", err))
	}
	b := &pgx.Batch{}
	b.BeginTx(in.cfg.TxOptions)
	entries := [...]dedup.Entry{t.entry(in.consumerID, outcome)}
	in.store.QueueClaim(b, entries[:], t.stored != nil, in.limits)
	switch outcome {
	case handler.Processed:
		in.queueLooks(b, t)
	case handler.Stored:
		r := in.newRow(t, 0)
		r.claimed = true
		in.queueStore(b, t, r)
	}

	tx := &t.firstTx
	if tx.conn != nil {
		tx = &claimedTx{}
	}
	tx.conn, tx.socket = conn, conn.Conn().PgConn().Conn()
	tx.timebox(in.cfg.LockTimeout + in.cfg.StatementTimeout)
	results := conn.Conn().SendBatch(ctx, b)
	tx.Tx = results.Tx()
	var claimed [len(entries)]bool
	if err := dedup.ReadClaim(results, claimed[:]); err != nil {
		in.rollback(ctx, tx)
		tx.release()
		return nil, in.judgeClaim(ctx, fmt.Errorf("claim message: %w", err))
	}
	if !owns(t, claimed[0]) {
		return nil, in.unclaimed(ctx, tx, t)
	}
	tx.untimed()
	return tx, verdict{}
}

// queueLooks queues behind the claim of a message that is to be handled what else
// decides whether it may be; a message of the inbox that nothing waits behind is
// taken out of it.
func (in *Inbox) queueLooks(b *pgx.Batch, t *task) {
	switch {
	case in.ordered(t):
		in.queueTurn(b, t)
	case t.stored != nil:
		in.queueLeave(b, t)
	}
	if in.mayBeForgotten(t) {
		in.queueAge(b, t)
	}
}

// unclaimed ends a transaction whose claim found the message settled, and says
// what the message is then. The look travels with the ROLLBACK.
func (in *Inbox) unclaimed(ctx context.Context, tx *claimedTx, t *task) verdict {
	var seen dedup.Seen
	b := &pgx.Batch{}
	in.store.QueueSeen(b, in.consumerID, t.identity.id, &seen)
	b.Queue("rollback")
	tx.timebox(in.cfg.StatementTimeout)
	err := tx.conn.Conn().SendBatch(ctx, b).Close()
	tx.release()
	if err != nil {
		return in.judgeOwn(ctx, fmt.Errorf("look at the message's row: %w", err))
	}
	return in.known(ctx, t, seen)
}

// known says what a message is that was claimed before.
func (in *Inbox) known(ctx context.Context, t *task, seen dedup.Seen) verdict {
	switch {
	case t.inDoubt && t.buried == nil && isHandled(seen.Outcome) && !seen.Differs(t.identity.fingerprint):
		return verdict{kind: settled, outcome: seen.Outcome} // the COMMIT whose answer was lost
	case t.inDoubt && t.buried != nil && seen.Outcome == handler.Dead && !seen.Differs(t.identity.fingerprint):
		in.announce(ctx, t, in.letter(t))
		return verdict{kind: settled, outcome: handler.Dead} // likewise
	case t.inDoubt && t.later != nil && t.stored == nil && seen.Outcome == handler.Stored && !seen.Differs(t.identity.fingerprint):
		return verdict{kind: settled, outcome: handler.Stored} // likewise
	case t.stored != nil && (seen.Outcome == handler.Stored || seen.Outcome == handler.Dead):
		return inOtherHands() // reopened since the claim
	case t.stored != nil:
		return in.settledElsewhere(ctx, t, seen)
	case t.identity.surrogate:
		return in.countAgain(ctx, t)
	case seen.Differs(t.identity.fingerprint):
		return in.mismatch(ctx, t)
	default:
		return verdict{kind: settled, outcome: handler.Duplicate}
	}
}

// isHandled reports whether a handler's transaction can end so.
func isHandled(o handler.Outcome) bool {
	return o == handler.Processed || o == handler.Superseded || o == handler.Skipped
}

// commit ends the transaction. Whatever happens to ctx, the COMMIT is sent and
// its answer awaited.
func (in *Inbox) commit(ctx context.Context, tx *claimedTx, t *task, outcome handler.Outcome) verdict {
	in.observe(ctx, Event{Kind: Committing, Message: t.msg, Attempt: t.attempts + 1})
	tx.timebox(in.cfg.HandlerTimeout)
	if err := tx.Commit(context.WithoutCancel(ctx)); err != nil {
		return in.judgeCommit(t, fmt.Errorf("commit: %w", err))
	}
	in.committed(ctx, tx)
	in.observe(ctx, Event{Kind: Committed, Message: t.msg, Attempt: t.attempts + 1})
	return verdict{kind: settled, outcome: outcome}
}

// committed calls what the handler wanted to be called. The message is settled,
// whatever that does.
func (in *Inbox) committed(ctx context.Context, tx *claimedTx) {
	defer func() {
		if value := recover(); value != nil {
			in.cfg.Logger.ErrorContext(ctx, "a function given to AfterCommit panicked; the message is settled all the same",
				slog.String("consumer", in.consumer), slog.Any("error", &PanicError{Value: value, Stack: debug.Stack()}))
		}
	}()
	tx.cause.Committed()
}

// whole says whether the transaction can still commit, without a round trip.
// A handler that passes over a failed statement, leaves rows open, or ends the
// transaction itself, has failed.
func (tx *claimedTx) whole() error {
	pg := tx.conn.Conn().PgConn()
	switch {
	case pg.IsClosed():
		return fmt.Errorf("%w: its connection is closed; return the error of the statement that broke it", ErrTxBroken)
	case pg.IsBusy():
		return fmt.Errorf("%w: a query is still open; close its rows before the handler returns", ErrTxBroken)
	}
	switch pg.TxStatus() {
	case 'T':
		return nil
	case 'E':
		return fmt.Errorf("%w: a statement in it failed; return its error, or guard it with a savepoint (tx.Begin)", ErrTxBroken)
	default:
		return ErrTxEnded
	}
}

// rollback ends a transaction whatever happens to ctx. Where it fails the
// connection is broken, and the pool drops it at release.
func (in *Inbox) rollback(ctx context.Context, tx *claimedTx) {
	tx.timebox(in.cfg.StatementTimeout)
	_ = tx.Rollback(context.WithoutCancel(ctx))
}

// release gives the connection back, once; the pool destroys one that is not
// idle.
func (tx *claimedTx) release() {
	if tx.socket == nil {
		return
	}
	tx.untimed()
	tx.socket = nil
	tx.conn.Release()
}

// acquire takes a connection. It does not wait for ever: a pool that others
// have emptied, or a server that does not answer, is an outage.
func (in *Inbox) acquire(ctx context.Context) (*pgxpool.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, in.cfg.StatementTimeout)
	defer cancel()
	return in.pool.Acquire(ctx)
}

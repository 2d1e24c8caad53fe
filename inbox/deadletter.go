package inbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/dedup"
	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/handler"
)

// reducedPayload is how much of a payload is kept that the database refuses.
const reducedPayload = 1 << 20

// burial is the decision that a message goes to the dead letters. It stands
// until it is written.
type burial struct {
	reason  dlq.Reason
	err     error
	refused error // the database refused the dead letter as it was: store less
	untold  error // it refused the event that tells of it: tell less
}

func (in *Inbox) bury(t *task, reason dlq.Reason, cause error) {
	t.buried = &burial{reason: reason, err: cause}
	t.inDoubt = false // of a COMMIT before, whose doubt the claim resolves; it is now about this decision
}

// lessen notes that the database refused what was to be written. It reports
// false if that was less already: the next try is with all of it again.
func (b *burial) lessen(cause error) bool {
	refused := &b.refused
	if errors.As(cause, new(*untoldError)) {
		refused = &b.untold
	}
	if *refused != nil {
		*refused = nil
		return false
	}
	*refused = cause
	return true
}

// writeDeadLetter claims the message as dead and writes its dead letter, in
// one transaction. It outlives the context of the handler that failed.
func (in *Inbox) writeDeadLetter(ctx context.Context, t *task) verdict {
	ctx = context.WithoutCancel(ctx)
	tx, v := in.claim(ctx, t, handler.Dead)
	if tx == nil {
		return v
	}
	defer tx.release()
	written, err := in.recordDeath(ctx, tx, t)
	switch {
	case err != nil:
		in.rollback(ctx, tx)
		tx.release() // before judgeOwn, which may look at the database on another connection
		return in.judgeOwn(ctx, err)
	case !written:
		in.rollback(ctx, tx)
		return in.notOurs(ctx, t)
	}
	v = in.commit(ctx, tx, t, handler.Dead)
	if v.kind == settled {
		in.announce(ctx, t, in.letter(t))
	}
	return v
}

// recordDeath writes what becomes of a dead message: its dead letter, and its
// place in the inbox if it holds its key. It reports false if the message is not
// this process's any more. What a person may decide about is locked in the order
// in which they do: the key, the row in the inbox, the letter.
func (in *Inbox) recordDeath(ctx context.Context, tx pgx.Tx, t *task) (bool, error) {
	parks := in.parks(t)
	if t.stored != nil && !parks {
		if left, err := in.leaveDead(ctx, tx, t); !left || err != nil {
			return false, err
		}
	}
	if parks && t.stored != nil {
		if err := in.lockKey(ctx, tx, t.stored.key); err != nil {
			return false, err
		}
	}
	if t.replay != nil {
		if open, err := in.failReplay(ctx, tx, t); !open || err != nil {
			return false, err
		}
	} else if err := in.add(ctx, tx, t, in.letter(t)); err != nil {
		return false, err
	}
	if !parks {
		return true, nil
	}
	return in.park(ctx, tx, t)
}

// notOurs ends a message that another process has taken over.
func (in *Inbox) notOurs(ctx context.Context, t *task) verdict {
	switch {
	case t.inDoubt: // the COMMIT whose answer was lost
		in.announce(ctx, t, in.letter(t))
		return verdict{kind: settled, outcome: handler.Dead}
	case t.replay != nil:
		return verdict{kind: settled, outcome: handler.Duplicate}
	default:
		return verdict{kind: settled, outcome: handler.Stored}
	}
}

// mismatch settles a message whose id was seen with another payload. Its dead
// letter has a unique key of its own and leaves the first one's row alone.
func (in *Inbox) mismatch(ctx context.Context, t *task) verdict {
	if in.cfg.Mismatch == MismatchSkip {
		return verdict{kind: settled, outcome: handler.Mismatch}
	}
	letter := in.letter(t)
	letter.Reason, letter.Errors = dlq.Mismatch, []string{mismatched(t).Error()}
	v := in.inTx(context.WithoutCancel(ctx), func(ctx context.Context, tx pgx.Tx) (handler.Outcome, error) {
		return handler.Mismatch, in.add(ctx, tx, t, letter)
	})
	if v.kind == settled {
		in.announce(ctx, t, letter)
	}
	return v
}

func mismatched(t *task) error {
	return fmt.Errorf("message id was seen before with another payload (fingerprint %d)", t.identity.fingerprint.Int64)
}

// countAgain notes a further copy of a message without a usable id.
func (in *Inbox) countAgain(ctx context.Context, t *task) verdict {
	return in.inTx(context.WithoutCancel(ctx), func(ctx context.Context, tx pgx.Tx) (handler.Outcome, error) {
		_, err := in.letters.Again(ctx, tx, in.consumerID, t.identity.id)
		return handler.Duplicate, err
	})
}

// add writes the dead letter of a task, and the event that tells the broker of
// it. A further copy of a mismatch is counted; it has been told.
func (in *Inbox) add(ctx context.Context, tx pgx.Tx, t *task, letter *dlq.Letter) error {
	addCtx, cancel := context.WithTimeout(ctx, in.cfg.StatementTimeout)
	defer cancel()
	id, count, err := in.letters.Add(addCtx, tx, letter)
	letter.ID, t.letterID = id, id
	if err != nil || letter.Reason == dlq.Mismatch && count > 1 {
		return err
	}
	return in.route(ctx, tx, letter, t.untold())
}

// inTx runs statements of the engine in a transaction of their own, whatever the
// database's default is: what follows a key's lock must see what its last holder did.
func (in *Inbox) inTx(ctx context.Context, f func(context.Context, pgx.Tx) (handler.Outcome, error)) verdict {
	ctx, cancel := context.WithTimeout(ctx, 3*in.cfg.StatementTimeout)
	defer cancel()
	var outcome handler.Outcome
	err := pgx.BeginTxFunc(ctx, in.pool, decisionTx, func(tx pgx.Tx) (err error) {
		outcome, err = f(ctx, tx)
		return err
	})
	if err != nil {
		return in.judgeOwn(context.WithoutCancel(ctx), err)
	}
	return verdict{kind: settled, outcome: outcome}
}

// letter is the dead letter of a task as it stands.
func (in *Inbox) letter(t *task) *dlq.Letter {
	now := time.Now()
	letter := &dlq.Letter{
		ID:            t.letterID,
		Consumer:      in.consumer,
		Owner:         in.cfg.DeadLetterOwner,
		State:         dlq.Open,
		ConsumerID:    in.consumerID,
		MessageID:     t.identity.id,
		Attempts:      t.attempts,
		FirstFailedAt: t.failures.first,
		LastFailedAt:  t.failures.last,
		Message:       t.msg,
	}
	if t.attempts == 0 {
		letter.FirstFailedAt, letter.LastFailedAt = now, now
	}
	if t.identity.fingerprint.Valid {
		letter.Fingerprint = &t.identity.fingerprint.Int64
	}
	if b := t.buried; b != nil {
		letter.Reason, letter.Errors = b.reason, errorChain(b.err)
		if b.refused != nil {
			reduce(letter, b.refused)
		}
	}
	return letter
}

// reduce cuts what a database may refuse, and says so.
func reduce(letter *dlq.Letter, refused error) {
	msg := *letter.Message
	note := fmt.Sprintf("stored without its %d headers and with %d of %d payload bytes, because the database refused it whole: %s",
		len(msg.Headers), min(len(msg.Payload), reducedPayload), len(msg.Payload), refused)
	msg.Headers = nil
	if len(msg.Payload) > reducedPayload {
		msg.Payload = msg.Payload[:reducedPayload]
	}
	letter.Message = &msg
	letter.Errors = append([]string{note}, letter.Errors...)
}

// errorChain is what a person reads of an error: each error of the chain, and
// the stack of one that came from a panic.
func errorChain(err error) []string {
	chain := dlq.Chain(err)
	var panicked *PanicError
	var exited *goexitError
	switch {
	case errors.As(err, &panicked):
		chain = append(chain, string(panicked.Stack))
	case errors.As(err, &exited):
		chain = append(chain, string(exited.stack))
	}
	return chain
}

// announce tells a person that there is something to look at.
func (in *Inbox) announce(ctx context.Context, t *task, letter *dlq.Letter) {
	var cause error
	switch {
	case letter.Reason != dlq.Mismatch && t.buried != nil:
		cause = t.buried.err
	case len(letter.Errors) > 0:
		cause = errors.New(letter.Errors[0])
	}
	in.cfg.Logger.ErrorContext(ctx, "message is dead: a person must decide", in.attrs(t,
		slog.Int64("dead_letter", letter.ID), slog.String("reason", string(letter.Reason)),
		slog.Int("attempts", t.attempts), slog.Any("error", cause))...)
	in.observe(ctx, Event{Kind: DeadLettered, Message: t.msg, Attempt: t.attempts, Reason: string(letter.Reason), Err: cause})
	in.callPerson(ctx, letter)
}

// callPerson calls the user's function. The letter is committed, whatever that does.
func (in *Inbox) callPerson(ctx context.Context, letter *dlq.Letter) {
	if in.cfg.OnDeadLetter == nil {
		return
	}
	defer func() {
		if value := recover(); value != nil {
			in.cfg.Logger.ErrorContext(ctx, "OnDeadLetter panicked; the dead letter is written all the same",
				slog.String("consumer", in.consumer), slog.Int64("dead_letter", letter.ID),
				slog.Any("error", &PanicError{Value: value, Stack: debug.Stack()}))
		}
	}()
	in.cfg.OnDeadLetter(ctx, letter)
}

// look reads the message's row outside of any transaction.
func (in *Inbox) look(ctx context.Context, t *task) (dedup.Seen, error) {
	ctx, cancel := context.WithTimeout(ctx, in.cfg.StatementTimeout)
	defer cancel()
	var seen dedup.Seen
	b := &pgx.Batch{}
	in.store.QueueSeen(b, in.consumerID, t.identity.id, &seen)
	if in.ordered(t) {
		in.queueTurn(b, t)
	}
	if in.mayBeForgotten(t) {
		in.queueAge(b, t)
	}
	if err := in.pool.SendBatch(ctx, b).Close(); err != nil {
		return seen, fmt.Errorf("look at the message's row: %w", err)
	}
	return seen, nil
}

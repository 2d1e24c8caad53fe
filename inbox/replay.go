package inbox

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-go/semel/dedup"
	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/handler"
)

// Replay handles a dead letter of this consumer again, with a new budget of
// attempts. Success resolves the dead letter in the transaction of the
// handler; a new failure updates it and leaves it open.
//
// The message goes through the inbox, in the place that it kept if its key waits
// for it. So a replay survives its process, and where it cannot be done at once
// the outcome is Stored: the quick attempts are spent, or others of its key come
// first; [Inbox.Work] or [Inbox.Run] goes on with it.
//
// Two who replay the same dead letter get one effect: the second outcome is
// Duplicate. Replaying a mismatch runs the second payload as a message of its
// own. The outcome is Processed, Superseded, Skipped, Duplicate, Stored or Dead:
// Superseded says that nothing was done, because something newer was. An error wraps
// [ErrNoDeadLetter], [ErrRedacted] or [handler.ErrCodec] (the payload cannot be
// decoded here; nothing was done), or is one of those of [Inbox.Process]; if that
// came after the replay had begun, a worker goes on with it.
func (in *Inbox) Replay(ctx context.Context, deadLetterID int64) (handler.Outcome, error) {
	if err := in.start(ctx); err != nil {
		return 0, err
	}
	t, err := in.beginReplay(ctx, deadLetterID)
	if err != nil {
		return 0, fmt.Errorf("replay dead letter %d for consumer %q: %w", deadLetterID, in.consumer, err)
	}
	outcome, err := in.direct(ctx, t)
	if err != nil {
		in.release(ctx, t.stored.owner, t.stored.id)
	}
	return outcome, err
}

// beginReplay puts the message of a dead letter into the inbox, for this process
// to handle.
func (in *Inbox) beginReplay(ctx context.Context, id int64) (*task, error) {
	timed, cancel := context.WithTimeout(ctx, 3*in.cfg.StatementTimeout)
	defer cancel()
	letter, err := in.load(timed, id)
	switch {
	case errors.Is(err, dlq.ErrNotFound):
		return nil, fmt.Errorf("%w: there is none with this id", ErrNoDeadLetter)
	case err != nil:
		return nil, in.startingError(ctx, err)
	case letter.ConsumerID != in.consumerID:
		return nil, fmt.Errorf("%w: it belongs to consumer %q", ErrNoDeadLetter, letter.Consumer)
	}
	s := &stored{owner: newOwner(), id: replayID(letter), key: keyHash(letter.Message.Key), letterID: letter.ID}
	if err := (Store{t: in.tables}).enqueue(timed, in.pool, letter, "", s, in.cfg.Lease); err != nil {
		return nil, in.startingError(ctx, err)
	}
	return in.taskOf(s, letter.Message, letter), nil
}

// startingError says what kept a replay from beginning: the letter, or the
// database, whatever its error says: a connection that broke has no code.
func (in *Inbox) startingError(ctx context.Context, err error) error {
	if ctx.Err() == nil && !errors.Is(err, ErrNoDeadLetter) && !errors.Is(err, ErrRedacted) && !errors.Is(err, handler.ErrCodec) {
		return fmt.Errorf("%w: %w", ErrOutage, err)
	}
	return err
}

// replayID is under what a dead letter is claimed again: the id of its first
// claim; for a mismatch one of its own, since that row is another message's.
func replayID(letter *dlq.Letter) dedup.ID {
	if letter.Reason != dlq.Mismatch {
		return letter.MessageID
	}
	var fingerprint [8]byte
	binary.BigEndian.PutUint64(fingerprint[:], uint64(*letter.Fingerprint)) //nolint:gosec // the bits, not the value
	return dedup.HashID(letter.MessageID[:], fingerprint[:])
}

func replayText(letter *dlq.Letter) pgtype.Text {
	if dedup.CheckID(letter.Message.ID) != nil {
		return pgtype.Text{}
	}
	return dedup.Text(letter.Message.ID, replayID(letter))
}

func letterFingerprint(letter *dlq.Letter) pgtype.Int8 {
	if letter.Fingerprint == nil {
		return pgtype.Int8{}
	}
	return pgtype.Int8{Int64: *letter.Fingerprint, Valid: true}
}

// settledElsewhere ends a message of the inbox that somebody else has settled. One
// that was reopened since has a new place: that is left to whoever takes it.
func (in *Inbox) settledElsewhere(ctx context.Context, t *task, seen dedup.Seen) verdict {
	return in.inTx(context.WithoutCancel(ctx), func(ctx context.Context, tx pgx.Tx) (handler.Outcome, error) {
		ordered := in.ordered(t)
		if ordered {
			if err := in.lockKey(ctx, tx, t.stored.key); err != nil {
				return 0, err
			}
		}
		tag, err := tx.Exec(ctx, in.rows.removePlace, in.consumerID, t.stored.id, t.stored.seq, t.stored.letterID)
		if err != nil || tag.RowsAffected() == 0 { // who settled it has done the rest
			return handler.Duplicate, err
		}
		b := &pgx.Batch{}
		if ordered {
			in.queueGoOn(b, t)
		}
		switch {
		case t.replay == nil:
		case seen.Outcome == handler.Skipped: // discarded: that stands, also where its dead letter was deleted and this is the next one
			(Store{t: in.tables}).queueNote(b, t.replay.ID, dlq.Discarded, "", dlq.Open, dlq.Replaying)
		default:
			in.letters.QueueResolve(b, t.replay.ID)
		}
		if b.Len() == 0 {
			return handler.Duplicate, nil
		}
		return handler.Duplicate, tx.SendBatch(ctx, b).Close()
	})
}

// failReplay notes in the dead letter how the replay failed. It reports false if
// a person has settled it meanwhile.
func (in *Inbox) failReplay(ctx context.Context, tx pgx.Tx, t *task) (open bool, err error) {
	t.letterID = t.replay.ID
	failCtx, cancel := context.WithTimeout(ctx, in.cfg.StatementTimeout)
	defer cancel()
	open, err = in.letters.Fail(failCtx, tx, t.replay.ID, dlq.Failure{
		Reason: t.buried.reason, Attempts: t.attempts, Errors: errorChain(t.buried.err),
	})
	if err != nil || !open {
		return open, err
	}
	return true, in.route(ctx, tx, deadAgain(t), t.buried.untold)
}

// deadAgain is the dead letter of a replay that failed, as it stands then.
func deadAgain(t *task) *dlq.Letter {
	letter := *t.replay
	if letter.Reason != dlq.Mismatch {
		letter.Reason = t.buried.reason
	}
	letter.Attempts += t.attempts
	letter.LastFailedAt, letter.Errors = time.Now(), errorChain(t.buried.err)
	return &letter
}

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
// Two who replay the same dead letter get one effect: the second outcome is
// Duplicate. Replaying a mismatch runs the second payload as a message of its
// own. The outcome is Processed, Duplicate or Dead. An error wraps
// [ErrNoDeadLetter] or is one of those of [Inbox.Process]; the dead letter is
// then as it was.
func (in *Inbox) Replay(ctx context.Context, deadLetterID int64) (handler.Outcome, error) {
	if err := in.start(ctx); err != nil {
		return 0, err
	}
	loadCtx, cancel := context.WithTimeout(ctx, in.cfg.StatementTimeout)
	defer cancel()
	letter, err := in.letters.Load(loadCtx, in.pool, deadLetterID)
	switch {
	case errors.Is(err, dlq.ErrNotFound):
		err = fmt.Errorf("%w: there is none with this id", ErrNoDeadLetter)
	case err != nil && ctx.Err() == nil: // whatever it says: a connection that broke has no code
		err = fmt.Errorf("%w: %w", ErrOutage, err)
	case err == nil && letter.ConsumerID != in.consumerID:
		err = fmt.Errorf("%w: it belongs to consumer %q", ErrNoDeadLetter, letter.Consumer)
	case err == nil && letter.State != dlq.Open && letter.State != dlq.Replaying:
		err = fmt.Errorf("%w: it is %s", ErrNoDeadLetter, letter.State)
	}
	if err != nil {
		return 0, fmt.Errorf("replay dead letter %d for consumer %q: %w", deadLetterID, in.consumer, err)
	}
	return in.direct(ctx, &task{msg: letter.Message, replay: letter})
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

// resolve closes the dead letter in the transaction of the handler.
func (in *Inbox) resolve(ctx context.Context, tx *claimedTx, t *task) verdict {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), in.cfg.StatementTimeout)
	defer cancel()
	if _, err := in.letters.Resolve(ctx, tx, t.replay.ID); err != nil {
		return in.judgeOwn(context.WithoutCancel(ctx), err)
	}
	return verdict{}
}

// settledElsewhere ends a replay whose message somebody else has settled.
func (in *Inbox) settledElsewhere(ctx context.Context, t *task, seen dedup.Seen) verdict {
	if seen.Outcome == handler.Skipped { // discarded: that stands
		return verdict{kind: settled, outcome: handler.Duplicate}
	}
	return in.inTx(context.WithoutCancel(ctx), func(ctx context.Context, tx pgx.Tx) (handler.Outcome, error) {
		_, err := in.letters.Resolve(ctx, tx, t.replay.ID)
		return handler.Duplicate, err
	})
}

// failReplay notes in the dead letter how the replay failed.
func (in *Inbox) failReplay(ctx context.Context, t *task) verdict {
	open := false
	v := in.inTx(ctx, func(ctx context.Context, tx pgx.Tx) (_ handler.Outcome, err error) {
		open, err = in.letters.Fail(ctx, tx, t.replay.ID, dlq.Failure{
			Reason: t.buried.reason, Attempts: t.attempts, Errors: errorChain(t.buried.err),
		})
		if err != nil || !open {
			return handler.Dead, err
		}
		return handler.Dead, in.route(ctx, tx, deadAgain(t), t.buried.untold)
	})
	switch {
	case v.kind != settled:
		return v
	case !open: // resolved or discarded meanwhile
		return verdict{kind: settled, outcome: handler.Duplicate}
	}
	in.announce(ctx, t, t.buried.reason, t.buried.err)
	return v
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

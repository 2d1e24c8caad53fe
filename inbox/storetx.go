package inbox

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/dedup"
	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/handler"
)

// StoreTx accepts a message to be handled later, in a transaction of the caller's:
// it is stored if and only if tx commits. It must be READ COMMITTED if the order of
// keys is kept ([Config.Ordering]), and short, since others that store a message of
// the same key wait for its end.
//
// The outcome is that of [Inbox.Store]. A copy that another transaction holds is
// waited for, as long as tx's lock_timeout allows; no setting of tx is changed.
// After an error tx must be rolled back, if the database has not done so.
//
// A dead letter that this writes is told to nobody, neither to
// [Config.OnDeadLetter] nor in the log: only the caller knows whether it commits.
func (in *Inbox) StoreTx(ctx context.Context, tx pgx.Tx, msg *handler.Message) (handler.Outcome, error) {
	if msg == nil {
		return 0, fmt.Errorf("store message for consumer %q: %w", in.consumer, errBadMessage)
	}
	if err := in.start(ctx); err != nil {
		return 0, err
	}
	outcome, err := in.storeTx(ctx, tx, &task{msg: msg, later: &postponement{}})
	if err != nil {
		return 0, fmt.Errorf("store message %.255q for consumer %q: %w", msg.ID, in.consumer, err)
	}
	return outcome, nil
}

func (in *Inbox) storeTx(ctx context.Context, tx pgx.Tx, t *task) (handler.Outcome, error) {
	outcome := handler.Stored
	switch v := in.identify(ctx, t); v.kind {
	case stopped:
		return 0, v.err
	case permanent:
		in.bury(t, reasonOf(v.err), v.err)
		outcome = handler.Dead
	}
	if err := in.checkRoom(ctx); err != nil && outcome == handler.Stored {
		return 0, err
	}
	if outcome == handler.Stored {
		if err := in.encode(ctx, t); err != nil {
			return 0, err
		}
	}
	entries := []dedup.Entry{t.entry(in.consumerID, outcome)}
	won, err := in.store.ClaimMany(ctx, tx, in.consumerID, entries, outcome)
	switch {
	case err != nil:
		return 0, err
	case len(won) == 0:
		return in.knownTx(ctx, tx, t)
	case outcome == handler.Dead:
		_, err := in.recordDeath(ctx, tx, t)
		return outcome, err
	}
	err = in.insert(ctx, tx, t, in.newRow(t, 0))
	if err == nil && t.row == rowRefused {
		err = in.tooManyOfKey(t)
	}
	return outcome, err
}

// knownTx is what becomes of a message that was seen before.
func (in *Inbox) knownTx(ctx context.Context, tx pgx.Tx, t *task) (handler.Outcome, error) {
	seen, err := in.store.SeenMany(ctx, tx, in.consumerID, []dedup.ID{t.identity.id})
	switch {
	case err != nil:
		return 0, err
	case t.identity.surrogate:
		_, err = in.letters.Again(ctx, tx, in.consumerID, t.identity.id)
		return handler.Duplicate, err
	case !seen[t.identity.id].Differs(t.identity.fingerprint):
		return handler.Duplicate, nil
	case in.cfg.Mismatch == MismatchDeadLetter:
		letter := in.letter(t)
		letter.Reason, letter.Errors = dlq.Mismatch, []string{mismatched(t).Error()}
		err = in.add(ctx, tx, t, letter)
	}
	return handler.Mismatch, err
}

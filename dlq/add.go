package dlq

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-go/semel/internal/msgrow"
)

// errIncomplete is a letter that cannot be stored for want of a field.
var errIncomplete = errors.New("incomplete dead letter")

// Add puts a message in front of a person and returns the dead letter's id, and
// how many copies of the message it stands for now.
//
// Where the consumer has a dead letter for this message already, the same row
// is opened again and shows this copy; copies and attempts are summed up. A
// [Mismatch] has a row for each fingerprint, in which a further copy is only
// counted: a person may have decided about that payload.
func (s Store) Add(ctx context.Context, tx pgx.Tx, l *Letter) (id, count int64, err error) {
	if err := l.check(); err != nil {
		return 0, 0, err
	}
	payload, err := msgrow.Encode(ctx, s.codec, l.Message.Payload)
	if err != nil {
		return 0, 0, fmt.Errorf("store message %.64q as dead letter of consumer %d: %w", l.Message.ID, l.ConsumerID, err)
	}
	sql := s.queries().add
	if l.Reason == Mismatch {
		sql = s.queries().addMismatch
	}
	if err := tx.QueryRow(ctx, sql, values(l, payload)...).Scan(&id, &count); err != nil {
		return 0, 0, fmt.Errorf("store message %.64q as dead letter of consumer %d: %w", l.Message.ID, l.ConsumerID, err)
	}
	return id, count, nil
}

func (l *Letter) check() error {
	switch {
	case l.Message == nil:
		return fmt.Errorf("store a dead letter of consumer %d: %w: it has no message", l.ConsumerID, errIncomplete)
	case l.Reason == "":
		return fmt.Errorf("store message %.64q as dead letter of consumer %d: %w: it has no reason", l.Message.ID, l.ConsumerID, errIncomplete)
	case l.Reason == Mismatch && l.Fingerprint == nil:
		return fmt.Errorf("store message %.64q as dead letter of consumer %d: %w: a mismatch must have a fingerprint", l.Message.ID, l.ConsumerID, errIncomplete)
	case l.Encoded:
		return fmt.Errorf("store message %.64q as dead letter of consumer %d: %w: its payload is as another one stored it, load that with a codec", l.Message.ID, l.ConsumerID, errIncomplete)
	}
	return nil
}

// Again counts a further copy of a message that is dead and has no usable id.
// It reports false if there is no such dead letter.
func (s Store) Again(ctx context.Context, tx pgx.Tx, consumerID int32, messageID [16]byte) (bool, error) {
	tag, err := tx.Exec(ctx, s.queries().again, consumerID, pgtype.UUID{Bytes: messageID, Valid: true})
	if err != nil {
		return false, fmt.Errorf("count a copy of dead message %x of consumer %d: %w", messageID, consumerID, err)
	}
	return tag.RowsAffected() > 0, nil
}

// Resolve notes that the message was handled after all. It reports false if
// the dead letter is neither open nor replaying: it was settled elsewhere.
func (s Store) Resolve(ctx context.Context, tx pgx.Tx, id int64) (bool, error) {
	tag, err := tx.Exec(ctx, s.queries().resolve, id)
	if err != nil {
		return false, fmt.Errorf("resolve dead letter %d: %w", id, err)
	}
	return tag.RowsAffected() > 0, nil
}

// QueueResolve queues on b what [Store.Resolve] does.
func (s Store) QueueResolve(b *pgx.Batch, id int64) { b.Queue(s.queries().resolve, id) }

// Failure is how a replay failed.
type Failure struct {
	// Reason is why it is dead now. A mismatch stays a mismatch whatever it says.
	Reason Reason

	// Attempts is how many attempts failed in this replay.
	Attempts int

	// Errors is the chain of errors of the last attempt, see [Chain].
	Errors []string
}

// Fail notes that a replay failed: the dead letter is open again. It reports
// false if the dead letter is neither open nor replaying.
func (s Store) Fail(ctx context.Context, tx pgx.Tx, id int64, f Failure) (bool, error) {
	if f.Reason == "" || f.Reason == Mismatch {
		return false, fmt.Errorf("note a failed replay of dead letter %d: %w: the reason cannot be %q", id, errIncomplete, f.Reason)
	}
	var a msgrow.Alterations
	chain := chainValue(&a, f.Errors)
	tag, err := tx.Exec(ctx, s.queries().fail, id, string(f.Reason), f.Attempts, chain, a.Note())
	if err != nil {
		return false, fmt.Errorf("note a failed replay of dead letter %d: %w", id, err)
	}
	return tag.RowsAffected() > 0, nil
}

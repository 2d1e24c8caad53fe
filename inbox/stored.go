package inbox

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-go/semel/dedup"
	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/internal/msgrow"
)

// stored is a message of the inbox that this process holds by a lease. The
// lease spares two workers the same message; that its effect happens once is the
// claim's doing.
type stored struct {
	owner pgtype.UUID
	seq   int64

	id          dedup.ID
	key         pgtype.Int8 // hash of the key
	fingerprint pgtype.Int8
	letterID    int64 // the dead letter that holds the message; 0: the row does
	attempts    int   // that failed before
	failing     time.Duration
	age         time.Duration // since it was stored
	abandoned   bool          // who held it before died or froze

	message msgrow.Row
}

// maxAttempts bounds what a row says of failed attempts: somebody may have written
// any number, and more are counted on it.
const maxAttempts = 1 << 30

// scan reads a row of queries/take.sql.
func (s *stored) scan(row pgx.CollectableRow) error {
	var (
		id           pgtype.UUID
		letter       pgtype.Int8
		failing, age pgtype.Interval
	)
	own := []any{&s.seq, &id, &s.key, &s.fingerprint, &letter, &s.attempts, &failing, &age, &s.abandoned}
	if err := row.Scan(append(own, s.message.Targets()...)...); err != nil {
		return err
	}
	s.id, s.letterID = id.Bytes, letter.Int64
	s.failing, s.age = max(duration(failing), 0), duration(age)
	s.attempts = min(max(s.attempts, 0), maxAttempts)
	return nil
}

// duration is a difference of two timestamps, which has no months, or the longest
// that there is: one of them may be thousands of years away.
func duration(i pgtype.Interval) time.Duration {
	const longest, day = time.Duration(math.MaxInt64), 24 * time.Hour
	switch days := time.Duration(i.Days); {
	case days > longest/day-2:
		return longest
	case days < -longest/day+2:
		return -longest
	default:
		return days*day + time.Duration(i.Microseconds)*time.Microsecond
	}
}

func interval(d time.Duration) pgtype.Interval {
	return pgtype.Interval{Microseconds: d.Microseconds(), Valid: true}
}

// taskOf is what runs for a message of the inbox. Letter is the dead letter that
// holds it, nil if the row does.
func (in *Inbox) taskOf(s *stored, msg *handler.Message, letter *dlq.Letter) *task {
	t := &task{stored: s, msg: msg, replay: letter, attempts: s.attempts}
	if s.attempts > 0 {
		t.failures.first = time.Now().Add(-s.failing)
		t.failures.last = t.failures.first
		t.failedCalls = in.failedBefore.recall(s.id, s.attempts)
	}
	t.key = laneKey(t.msg)
	return t
}

// identityOf is under what a message of the inbox is claimed: its row says so.
func identityOf(t *task) identity {
	if t.replay != nil {
		return identity{id: replayID(t.replay), text: replayText(t.replay), fingerprint: letterFingerprint(t.replay)}
	}
	id := identity{id: t.stored.id, fingerprint: t.stored.fingerprint}
	if dedup.CheckID(t.msg.ID) == nil {
		id.text = dedup.Text(t.msg.ID, t.stored.id)
	}
	return id
}

// queueLeave queues on b what takes a message out of the inbox in the
// transaction that settles it. The next of its key may run then.
func (in *Inbox) queueLeave(b *pgx.Batch, t *task) {
	ordered := in.ordered(t)
	if ordered {
		in.rows.queueLock(b, in.consumerID, t.stored.key)
	}
	b.Queue(in.rows.removePlace, in.consumerID, t.stored.id, t.stored.seq, t.stored.letterID).Exec(func(tag pgconn.CommandTag) error {
		t.gone = tag.RowsAffected() == 0
		return nil
	})
	if ordered {
		in.queueGoOn(b, t)
	}
}

// queueGoOn queues on b that the next of the message's key may run.
func (in *Inbox) queueGoOn(b *pgx.Batch, t *task) {
	b.Queue(in.rows.goOn, in.consumerID, t.stored.key).Exec(func(tag pgconn.CommandTag) error {
		t.freed = tag.RowsAffected() > 0
		return nil
	})
}

// leave takes a message that was handled out of the inbox, and closes the dead
// letter that it replayed. What was not there any more stands in t.
func (in *Inbox) leave(ctx context.Context, tx pgx.Tx, t *task) error {
	b := &pgx.Batch{}
	if in.ordered(t) { // else the claim took it out
		in.queueLeave(b, t)
	}
	if t.replay != nil {
		in.letters.QueueResolve(b, t.replay.ID)
	}
	if b.Len() == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), in.cfg.StatementTimeout)
	defer cancel()
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return fmt.Errorf("take the message out of the inbox: %w", err)
	}
	if t.gone {
		return nil
	}
	in.observe(ctx, Event{Kind: Leaving, Message: t.msg, Attempt: t.attempts + 1})
	return nil
}

// inOtherHands ends a message that is not in the inbox any more as this process took
// it: another one had it when the lease was over, or a person decided. If it waits
// there still, it is theirs to handle.
func inOtherHands() verdict { return verdict{kind: settled, outcome: handler.Stored} }

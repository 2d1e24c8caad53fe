package inbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/dedup"
	"github.com/semel-go/semel/dlq"
)

// ErrTooOld is wrapped by the error of a dead letter with the reason too_old:
// the message's broker time is before the purge of what was handled, so nobody
// can tell any more whether it was. Replaying it handles it.
//
// [Inbox.Process] returns it when many messages in a row are: it settles no more
// of them.
var ErrTooOld = errors.New("message is older than what is remembered")

// TooOldPolicy says what happens to a message that is older than what the
// consumer still remembers.
type TooOldPolicy int

const (
	// TooOldDeadLetter sends it to the dead letters, reason too_old. Many in a
	// row pause the source instead.
	TooOldDeadLetter TooOldPolicy = iota

	// TooOldRun handles it, as a message that was never seen.
	TooOldRun
)

// maxTooOld is how many in a row go to the dead letters. More are no stragglers:
// somebody has set a group back, or the producer's clock is wrong.
const maxTooOld = 100

// unpurgedAge is how old a message must be before a purge can have deleted its
// row, with half a day for clocks that differ.
const unpurgedAge = dedup.MinRetention / 2

// streak counts the messages in a row that were too old.
type streak struct {
	length atomic.Int32
	long   atomic.Bool // it was too long once: a run does not go on
}

// streakOf is the streak of the task's run, or of all that comes without one.
func (in *Inbox) streakOf(t *task) *streak {
	if t.run != nil {
		return &t.run.tooOld
	}
	return &in.tooOld
}

func (s *streak) end() {
	if s.length.Load() != 0 { // a write that all workers share only where it is one
		s.length.Store(0)
	}
}

// mayBeForgotten reports whether a purge can have deleted the message's row. It
// is all that a young message pays.
func (in *Inbox) mayBeForgotten(t *task) bool {
	at := t.msg.Origin.Time
	return !at.IsZero() && t.stored == nil && in.cfg.TooOld == TooOldDeadLetter && time.Since(at) > unpurgedAge
}

// queueAge queues the look at whether the message is too old behind its claim.
func (in *Inbox) queueAge(b *pgx.Batch, t *task) {
	in.store.QueueWatermark(b, in.consumer, func(before time.Time) {
		t.forgotten = time.Time{}
		if t.msg.Origin.Time.Before(before) {
			t.forgotten = before
		}
	})
}

// refuse decides on a message that is too old. No attempt is spent, since none
// was made.
func (in *Inbox) refuse(ctx context.Context, t *task) verdict {
	cause := fmt.Errorf("%w: its broker time is %s, and records are purged up to %s: find out whether it was handled, replay it if it was not",
		ErrTooOld, t.msg.Origin.Time.UTC().Format(time.RFC3339), t.forgotten.UTC().Format(time.RFC3339))
	s := in.streakOf(t)
	tooMany := s.length.Add(1) > maxTooOld
	if tooMany {
		cause = fmt.Errorf("after %d in a row: %w", maxTooOld, cause)
	}
	switch {
	case tooMany && t.run == nil:
		return verdict{kind: stopped, err: cause}
	case tooMany || s.long.Load():
		s.long.Store(true)
		return verdict{kind: away, err: cause} // trips the gate, which does not open again
	}
	in.counters.tooOld.Add(1)
	in.bury(t, dlq.TooOld, cause)
	return in.writeDeadLetter(ctx, t)
}

// waitForPerson keeps the source paused until the run ends: each further
// message would be one more for a person who has to decide on all of them.
func (r *run) waitForPerson(ctx context.Context) {
	in := r.in
	in.counters.paused.Add(1)
	defer in.counters.paused.Add(-1)
	err := r.gate.reason()
	in.cfg.Logger.ErrorContext(ctx, "one message after the other is older than what is remembered: intake is paused, a person must decide; set Config.TooOld to TooOldRun to handle them, or the group's offsets to where they were, and start again",
		slog.String("consumer", in.consumer), slog.Int("in_a_row", maxTooOld), slog.Any("error", err))
	in.observe(ctx, Event{Kind: Paused, Err: err})
	r.pausing.set(databaseAway, true)
	defer r.pausing.set(databaseAway, false) // the source may be run again
	select {
	case <-ctx.Done():
	case <-r.stopping:
		r.giveUp() // a drain does not wait for a person
		<-ctx.Done()
	}
}

package inbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/semel-go/semel/dlq"
	"github.com/semel-go/semel/handler"
)

// maxDeaths is how many processes a message may take along. When the first one
// died it was one of many that were under way; when the second did, one of those
// that the journal knows. From then on it runs alone, and is found out.
const maxDeaths = 3

// errCrashed is why a message is dead that killed its process every time.
var errCrashed = errors.New("the message killed its process")

// suspicious reports whether the message may have been under way when a process
// died. No other message pays anything for those that kill.
func (in *Inbox) suspicious(t *task) bool {
	if t.stored != nil {
		return t.stored.abandoned
	}
	if in.cfg.Ordering == ViaInbox && in.identifiesItself() {
		return false // it is stored, and none of the user's code runs
	}
	return t.msg.Origin.Redelivered
}

// identifiesItself reports whether a message's identity is known without any of
// the user's code.
func (in *Inbox) identifiesItself() bool { return in.cfg.ID == nil && in.cfg.Fingerprint == nil }

// suspect has what runs of the user's code for the message noted in the journal,
// as it may have killed a process. One that was under way in two deaths runs alone
// among its like; one that killed too many is buried instead. What it returns ends
// that.
//
// The first time they run beside each other: after the death of a Kafka consumer
// there can be ten thousand suspects, and all but one have done nothing.
func (in *Inbox) suspect(ctx context.Context, t *task) (through func(), err error) {
	t.journal = surrogateID(t.msg)
	if t.stored != nil || in.identifiesItself() {
		in.identify(ctx, t)
		t.journal = t.identity.id
		if settled, err := in.settledBefore(ctx, t); settled || err != nil {
			return func() {}, err
		}
	}
	begun, err := in.begunBefore(ctx, t)
	if err != nil {
		return nil, err
	}
	t.suspect = true
	if deaths := begun + 1; deaths >= maxDeaths { // the one that made it a suspect stands in no journal
		in.bury(t, dlq.Crashed, fmt.Errorf("%w: it was under way when %d died, the last time alone", errCrashed, deaths))
		if !in.identifiesItself() && t.stored == nil { // the user's code may be what kills
			in.identifyAs(t, t.msg.ID, in.cfg.unaskedID(), 0, false)
		}
		return func() { in.clearJournal(ctx, t, in.rows.journalForget) }, nil
	}
	if begun == 0 {
		return func() {}, nil
	}
	if err := in.alone(ctx, t); err != nil {
		return nil, err
	}
	return func() {
		in.clearJournal(ctx, t, in.rows.journalForget)
		t.letOthers()
	}, nil
}

// unaskedID is why a message has no id of its own when Config.ID is not asked.
func (c Config) unaskedID() error {
	if c.ID == nil {
		return nil
	}
	return errors.New("Config.ID was not asked again")
}

// settledBefore looks whether the message has its outcome already: then none of
// the user's code runs.
func (in *Inbox) settledBefore(ctx context.Context, t *task) (bool, error) {
	for {
		seen, err := in.look(ctx, t)
		if err == nil {
			waiting := seen.Outcome == handler.Stored || seen.Outcome == handler.Dead
			return seen.Found && (t.stored == nil || !waiting), nil
		}
		if err := in.wait(ctx, t, in.judgeOwn(ctx, err)); err != nil {
			return false, err
		}
	}
}

// alone waits until no other suspect runs alone in this process. From then on t does,
// until letOthers.
func (in *Inbox) alone(ctx context.Context, t *task) error {
	letOthers := sync.OnceFunc(func() { in.suspects <- struct{}{} })
	select {
	case <-in.suspects:
		t.letOthers = letOthers
		return nil
	default:
	}
	in.rest(t)
	select {
	case <-in.suspects:
	case <-ctx.Done():
		return t.stopCause(ctx)
	case <-t.hopeless():
		return t.stopCause(ctx)
	case <-t.revoked():
		return t.stopCause(ctx)
	}
	in.lanes.rejoin(t)
	if err := in.await(ctx, t); err != nil {
		letOthers()
		return err
	}
	t.letOthers = letOthers
	return nil
}

// begunBefore is how many attempts of the message began and did not end: each was
// a death.
func (in *Inbox) begunBefore(ctx context.Context, t *task) (attempts int, err error) {
	for {
		attempts, err = in.inJournal(ctx, t, in.rows.journaled)
		if err == nil {
			return attempts, nil
		}
		if err := in.wait(ctx, t, in.judgeOwn(ctx, err)); err != nil {
			return 0, err
		}
	}
}

// inJournal runs a statement on the message's row in the journal and returns how
// many attempts stand there.
func (in *Inbox) inJournal(ctx context.Context, t *task, sql string) (attempts int, err error) {
	ctx, cancel := context.WithTimeout(ctx, in.cfg.StatementTimeout)
	defer cancel()
	if err := in.pool.QueryRow(ctx, sql, in.consumerID, t.journal).Scan(&attempts); err != nil {
		return 0, fmt.Errorf("look at the message's row in the journal: %w", err)
	}
	return attempts, nil
}

// journaled runs some of the user's code for the message. Of a suspect it notes
// before that it runs, and after it that it has ended without taking its process
// along. A message that only waits, for a lock or for its next attempt, stands in
// no journal: whoever dies meanwhile, it was not the cause.
func (in *Inbox) journaled(ctx context.Context, t *task, run func() callResult) callResult {
	if !t.suspect || t.noted {
		return run()
	}
	if err := in.beginJournal(ctx, t); err != nil {
		return callResult{err: err, own: true}
	}
	defer in.endJournal(ctx, t)
	return run()
}

// journaledEarly reports whether an attempt must be noted before its claim: the
// claim takes the only connection, and the note is committed on another.
func (in *Inbox) journaledEarly(t *task) bool { return t.suspect && in.pool.Config().MaxConns < 2 }

func (in *Inbox) beginJournal(ctx context.Context, t *task) error {
	_, err := in.inJournal(ctx, t, in.rows.journalBegin)
	t.noted = err == nil
	return err
}

func (in *Inbox) endJournal(ctx context.Context, t *task) {
	t.noted = false
	in.clearJournal(ctx, t, in.rows.journalEnd)
}

// clearJournal takes back what the journal says of the message.
func (in *Inbox) clearJournal(ctx context.Context, t *task, sql string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), in.cfg.StatementTimeout)
	defer cancel()
	if _, err := in.pool.Exec(ctx, sql, in.consumerID, t.journal); err != nil {
		in.cfg.Logger.WarnContext(ctx, "the journal keeps an attempt that has ended: if the message is a suspect again, that counts as a death", in.attrs(t,
			slog.Any("error", err))...)
	}
}

// wait waits as long as a step asks for that did not settle the message. An error
// means that it goes no further.
func (in *Inbox) wait(ctx context.Context, t *task, v verdict) error {
	if v.kind == stopped {
		return v.err
	}
	if v.kind == permanent { // the database refuses a look at the message's own row
		v.kind = away
	}
	return in.next(ctx, t, v)
}

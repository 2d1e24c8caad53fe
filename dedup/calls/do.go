package calls

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-go/semel/dedup"
	"github.com/semel-go/semel/handler"
)

// Do makes the call of one step of a message, unless it is done already, and returns
// its result, stored. It is for Config.Prepare of the engine, and belongs in no
// transaction: each of its statements commits by itself. A second Do of the same step
// and message returns the stored result and calls nothing, so a message that makes
// two calls needs two steps.
//
// What comes back besides a result says how the message goes on: see the table in
// the documentation of the package. A call that is under way when ctx ends is
// unknown, like one that was not answered.
func (l *Ledger) Do(ctx context.Context, msg *handler.Message, step string, call Func, o Options) ([]byte, error) {
	if err := l.Check(step, o); err != nil {
		return nil, err
	}
	t, err := l.newTry(ctx, msg, step, o.withDefaults())
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	defer l.letGo(ctx, t)
	if err := l.intended(ctx, t, func(db querier) error { return l.work(ctx, db, t, call) }); err != nil {
		return nil, err
	}
	return l.settle(ctx, t)
}

// try is one Do.
type try struct {
	call       Call
	opts       Options
	consumerID int32
	text       pgtype.Text
	owner      pgtype.UUID
	epoch      int64
	lease      time.Duration
	began      time.Time // before the statement by which it was last taken: the database's lease ends later than one from here

	now        time.Time // of the database
	taken      bool
	fresh      bool // its row is new
	before     standing
	generation int    // as it stands in the row
	stored     stored // if it is not ours

	held  bool     // to be given back as back
	back  standing // how it stands if nothing else is told
	ended ended
}

// standing is how a call stands. Times go back into the row as they came.
type standing struct {
	state     State
	sentFirst pgtype.Timestamptz
	deadline  pgtype.Timestamptz
}

// ended is what came of a try.
type ended struct {
	state  State  // Done: of result; else what err means for the call
	known  bool   // it stands in the ledger already
	result []byte // of Done
	err    error
	said   error // what the ledger notes of it, whose row says what call it is; nil: err
}

func (l *Ledger) newTry(ctx context.Context, msg *handler.Message, step string, o Options) (*try, error) {
	cause := handler.CauseFrom(ctx)
	if cause == nil || cause.Consumer == "" {
		return nil, fmt.Errorf("call %q: its context is not that of a consumer's Prepare: hand on the one that Prepare was given", step)
	}
	t := &try{opts: o, consumerID: dedup.ConsumerID(cause.Consumer), lease: l.cfg.Lease}
	if t.lease == 0 {
		t.lease = o.Timeout + l.cfg.Grace
	}
	t.call = Call{Consumer: cause.Consumer, Message: msg.ID, MessageID: messageID(cause, msg), Step: step, Generation: 1}
	if dedup.CheckID(msg.ID) == nil {
		t.text = dedup.Text(msg.ID, t.call.MessageID)
	}
	var err error
	if t.owner, err = newOwner(); err != nil {
		return nil, err
	}
	if t.call.Key, err = o.keyOf(t.call); err != nil {
		return nil, fmt.Errorf("call %q: %w", step, err)
	}
	return t, nil
}

// messageID is under what the message is claimed.
func messageID(cause *handler.Cause, msg *handler.Message) dedup.ID {
	if id := dedup.ID(cause.MessageID); id != (dedup.ID{}) {
		return id
	}
	return dedup.MessageID(msg.ID)
}

// name is the call in an error.
func (c Call) name() string { return fmt.Sprintf("call %q of message %s", c.Step, c.MessageID) }

// work does with a call that was taken, or was not, what its row asks for.
func (l *Ledger) work(ctx context.Context, db querier, t *try, call Func) error {
	if !t.taken {
		return l.notOurs(ctx, t)
	}
	switch t.next(l.cfg.Grace) {
	case sendIntended:
		l.send(ctx, t, call)
	case sendAgain:
		return l.again(ctx, db, t, call)
	case sendAnew:
		if err := t.renew(); err != nil {
			return err
		}
		return l.again(ctx, db, t, call)
	case ask:
		if t.before.state == Failed {
			if err := t.renew(); err != nil {
				return err
			}
		}
		if l.ask(ctx, t) {
			return l.again(ctx, db, t, call)
		}
	case wait:
		t.ended = ended{state: t.before.state, err: handler.InFlight(fmt.Errorf("%s: its last attempt may be under way until %s: %w",
			t.call.name(), t.call.Deadline.UTC().Format(time.RFC3339), ErrInHand))}
	case giveUp:
		t.ended = t.unknown(errors.New("the provider does not remember its key, and cannot be asked"))
	}
	return nil
}

// notOurs is for a call that is done, in somebody else's hand, or of a message that
// is settled.
func (l *Ledger) notOurs(ctx context.Context, t *try) error {
	switch {
	case t.stored.found && t.before.state == Done:
		result, err := t.stored.decode(ctx, l.cfg.Codec)
		if err != nil {
			return fmt.Errorf("result of %s: %w", t.call.name(), err)
		}
		t.ended = ended{state: Done, known: true, result: result}
		return nil
	case t.stored.settled:
		return handler.InFlight(fmt.Errorf("%s: %w", t.call.name(), ErrSettled))
	default:
		return handler.InFlight(fmt.Errorf("%s: %w", t.call.name(), ErrInHand))
	}
}

// again commits the intent of a call whose row is older, and makes it.
func (l *Ledger) again(ctx context.Context, db querier, t *try, call Func) error {
	ours, err := l.intend(ctx, db, t)
	switch {
	case err != nil:
		return err
	case !ours:
		t.held = false
		return handler.InFlight(fmt.Errorf("%s: %w", t.call.name(), ErrInHand))
	}
	l.send(ctx, t, call)
	return nil
}

// send makes the call, and says what its answer means.
func (l *Ledger) send(ctx context.Context, t *try, call Func) {
	l.trace(ctx, AfterIntent, t.call)
	l.trace(ctx, BeforeCall, t.call)
	callCtx, cancel := context.WithDeadlineCause(ctx, t.began.Add(t.opts.Timeout), ErrTimeout)
	defer cancel()
	switch {
	case ctx.Err() != nil:
		t.ended = t.notSent(context.Cause(ctx))
		return
	case callCtx.Err() != nil || wallSince(t.began) >= t.opts.Timeout:
		// Stopped behind the intent: another one may have taken over.
		t.ended = t.notSent(handler.InFlight(fmt.Errorf("%s: this process stood still for %s before it was sent: %w",
			t.call.name(), wallSince(t.began).Round(time.Millisecond), ErrInHand)))
		return
	}
	result, err := call(callCtx, t.call.Key)
	l.trace(ctx, AfterAnswer, t.call)
	t.ended = t.judge(callCtx, result, err)
}

// wallSince is by the clock on the wall, which goes on while a machine sleeps.
func wallSince(began time.Time) time.Duration { return time.Now().Round(0).Sub(began.Round(0)) }

// judge says what the answer of a call means.
func (t *try) judge(ctx context.Context, result []byte, err error) ended {
	var unsent interface{ NotSent() bool }
	switch {
	case err == nil:
		return ended{state: Done, result: result}
	case errors.As(err, &unsent) && unsent.NotSent():
		return t.notSent(err)
	case errors.Is(err, handler.ErrCallUnknown):
		return t.unknown(err)
	case handler.IsPermanent(err):
		return ended{state: Failed, err: err} // the provider has said no
	case errors.Is(context.Cause(ctx), ErrTimeout):
		err = fmt.Errorf("%w within %s: %w", ErrTimeout, t.opts.Timeout, err)
	}
	return ended{state: Started, err: fmt.Errorf("%s, whose end is unknown now: %w", t.call.name(), err), said: err}
}

// notSent leaves the call as it was before this attempt.
func (t *try) notSent(err error) ended {
	t.back = t.before
	if t.before.state == Failed { // this generation is new
		t.back.state, t.back.sentFirst = Ready, pgtype.Timestamptz{}
	}
	return ended{state: t.back.state, err: err}
}

// unknown puts the call in front of a person.
func (t *try) unknown(err error) ended {
	return ended{state: Unknown, err: handler.Permanent(fmt.Errorf("%s: %w: %w; look at the provider, then decide with semel calls resolve", t.call.name(), handler.ErrCallUnknown, err)), said: err}
}

// renew begins a generation.
func (t *try) renew() (err error) {
	if t.call.Generation == math.MaxInt32 { // somebody has written that
		return handler.Permanent(fmt.Errorf("%s: its generation %d is the last one that there can be", t.call.name(), t.call.Generation))
	}
	t.call.Generation++
	t.call.Attempt, t.call.SentFirst = 0, time.Time{}
	if t.call.Key, err = t.opts.keyOf(t.call); err != nil {
		return fmt.Errorf("%s: %w", t.call.name(), err)
	}
	return nil
}

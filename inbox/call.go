package inbox

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/handler"
)

// callResult is what came of running user code once.
type callResult struct {
	err       error
	expired   bool // its own deadline passed before it returned
	abandoned bool // it did not return at all
	own       bool // the error is of a statement of the engine: none of it ran
	connLost  bool // the connection of its transaction is gone
}

// handlerTx is the transaction as a handler sees it: whoever began it ends it.
type handlerTx claimedTx

// Commit refuses.
func (*handlerTx) Commit(context.Context) error {
	return errors.New("the engine commits this transaction when the handler returns nil: do not call Commit")
}

// Rollback refuses.
func (*handlerTx) Rollback(context.Context) error {
	return errors.New("the engine rolls this transaction back when the handler returns an error: do not call Rollback")
}

// call runs the handler. A handler that does not return is left behind with
// its connection, which is cut off so that the server frees the claim.
func (in *Inbox) call(ctx context.Context, tx *claimedTx, t *task) callResult {
	tx.Tx = workTx(ctx, tx)
	tx.cause = in.cause(t)
	tx.cause.Keep(t.kept)
	result := in.journaled(ctx, t, func() callResult {
		return in.guarded(handler.WithCause(ctx, &tx.cause), &tx.call, in.handle, (*handlerTx)(tx), t)
	})
	if result.abandoned {
		tx.conn.Hijack()      // out of the pool, which may open another in its place
		_ = tx.socket.Close() // the only part of a connection that may be touched while the handler uses it
	}
	return result
}

// cause is what user code runs for.
func (in *Inbox) cause(t *task) handler.Cause {
	return handler.Cause{Consumer: in.consumer, Message: t.msg, MessageID: t.identity.id, Attempt: t.attempts + 1, Replay: t.replay != nil}
}

// prepare runs Config.Prepare, unless the message is settled already.
func (in *Inbox) prepare(ctx context.Context, t *task) verdict {
	t.kept = nil
	seen, err := in.look(ctx, t)
	waiting := seen.Outcome == handler.Stored || seen.Outcome == handler.Dead
	switch {
	case err != nil:
		return in.judgeOwn(ctx, err)
	case seen.Found && (t.stored == nil || !waiting):
		return verdict{} // the claim will tell what it is
	case t.waits:
		return in.notYet(ctx, t)
	case !t.forgotten.IsZero():
		return in.refuse(ctx, t) // what Prepare does outside may be done already
	}
	prepare := func(ctx context.Context, _ pgx.Tx, msg *handler.Message) error { return in.cfg.Prepare(ctx, msg) }
	cause := in.cause(t)
	result := in.journaled(ctx, t, func() callResult {
		return in.guarded(handler.WithCause(ctx, &cause), &guardedCall{}, prepare, nil, t)
	})
	if result.err == nil {
		t.kept = cause.Kept()
		return verdict{}
	}
	return in.judge(ctx, result)
}

// guardedCall is one run of user code, shared with its goroutine.
type guardedCall struct {
	done    chan struct{} // one place: err is there
	err     error
	givenUp atomic.Bool // swapped by both sides: the second one knows that it is
}

// guarded runs user code in a goroutine of its own, so that nothing it does
// reaches the engine: a panic, runtime.Goexit, or never coming back. Its
// context ends after the handler timeout; after the watchdog's grace it is
// given up. The call is used once.
func (in *Inbox) guarded(ctx context.Context, c *guardedCall, f handler.Func, tx pgx.Tx, t *task) callResult {
	msg := t.msg
	callCtx, cancel := context.WithTimeoutCause(ctx, in.cfg.HandlerTimeout, ErrHandlerTimeout)
	defer cancel()

	c.done, _ = in.dones.Get().(chan struct{})
	if c.done == nil {
		c.done = make(chan struct{}, 1)
	}
	t.crew().do(func() {
		normal := false
		defer func() {
			if value := recover(); value != nil {
				c.err = &PanicError{Value: value, Stack: debug.Stack()}
			} else if !normal {
				c.err = &goexitError{stack: debug.Stack()}
			}
			c.err = readable(c.err)
			if c.givenUp.Swap(true) {
				in.counters.stuck.Add(-1)
				in.cfg.Logger.WarnContext(ctx, "stuck handler returned", slog.String("consumer", in.consumer),
					slog.String("message_id", printable(msg.ID)))
				return
			}
			c.done <- struct{}{}
		}()
		c.err = f(callCtx, tx, msg)
		normal = true
	})

	select {
	case <-c.done:
		in.dones.Put(c.done)                                                                // empty, and the goroutine is through with it
		return callResult{err: c.err, expired: context.Cause(callCtx) == ErrHandlerTimeout} //nolint:errorlint // the cause is ours
	case <-callCtx.Done():
	}
	expired := context.Cause(callCtx) == ErrHandlerTimeout //nolint:errorlint // the cause is ours
	grace := time.NewTimer(in.cfg.WatchdogGrace)
	defer grace.Stop()
	select {
	case <-c.done:
		return callResult{err: c.err, expired: expired}
	case <-grace.C:
	}
	if c.givenUp.Swap(true) {
		<-c.done // it returned at the same moment
		return callResult{err: c.err, expired: expired}
	}
	in.counters.stuck.Add(1)
	in.cfg.Logger.ErrorContext(ctx, "handler is stuck: it ignores the end of its context, and its goroutine is lost until it returns",
		slog.String("consumer", in.consumer), slog.String("message_id", printable(msg.ID)), slog.String("message_type", printable(msg.Type)))
	in.observe(ctx, Event{Kind: Stuck, Message: msg, Err: errStuck})
	return callResult{err: errStuck, expired: expired, abandoned: true}
}

// goexitError is the error of an attempt whose handler called runtime.Goexit.
type goexitError struct{ stack []byte }

func (e *goexitError) Error() string { return errGoexit.Error() }
func (e *goexitError) Unwrap() error { return errGoexit }

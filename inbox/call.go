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
	connLost  bool // the connection of its transaction is gone
}

// handlerTx is the transaction as a handler sees it: whoever began it ends it.
type handlerTx struct{ pgx.Tx }

func (handlerTx) Commit(context.Context) error {
	return errors.New("the engine commits this transaction when the handler returns nil: do not call Commit")
}

func (handlerTx) Rollback(context.Context) error {
	return errors.New("the engine rolls this transaction back when the handler returns an error: do not call Rollback")
}

// call runs the handler. A handler that does not return is left behind with
// its connection, which is cut off so that the server frees the claim.
func (in *Inbox) call(ctx context.Context, tx *claimedTx, msg *handler.Message) callResult {
	socket := tx.conn.Conn().PgConn().Conn()
	result := in.guarded(ctx, msg, func(ctx context.Context) error {
		return in.handle(ctx, handlerTx{workTx(ctx, tx)}, msg)
	})
	if result.abandoned {
		tx.conn.Hijack()   // out of the pool, which may open another in its place
		_ = socket.Close() // the only part of a connection that may be touched while the handler uses it
	}
	return result
}

// prepare runs Config.Prepare, unless the message is settled already.
func (in *Inbox) prepare(ctx context.Context, t *task) verdict {
	if t.replay == nil {
		seen, err := in.look(ctx, t)
		if err != nil {
			return in.judgeOwn(ctx, err)
		}
		if seen.Found {
			return verdict{} // the claim will tell what it is
		}
	}
	result := in.guarded(ctx, t.msg, func(ctx context.Context) error { return in.cfg.Prepare(ctx, t.msg) })
	if result.err == nil {
		return verdict{}
	}
	return in.judge(ctx, result)
}

// guarded runs user code in a goroutine of its own, so that nothing it does
// reaches the engine: a panic, runtime.Goexit, or never coming back. Its
// context ends after the handler timeout; after the watchdog's grace it is
// given up.
func (in *Inbox) guarded(ctx context.Context, msg *handler.Message, f func(context.Context) error) callResult {
	callCtx, cancel := context.WithTimeoutCause(ctx, in.cfg.HandlerTimeout, ErrHandlerTimeout)
	defer cancel()

	var givenUp atomic.Bool // swapped by both sides: the second one knows that it is
	done := make(chan error, 1)
	go func() {
		normal := false
		var err error
		defer func() {
			if value := recover(); value != nil {
				err = &PanicError{Value: value, Stack: debug.Stack()}
			} else if !normal {
				err = &goexitError{stack: debug.Stack()}
			}
			err = readable(err)
			if givenUp.Swap(true) {
				in.counters.stuck.Add(-1)
				in.cfg.Logger.WarnContext(ctx, "stuck handler returned", slog.String("consumer", in.consumer),
					slog.String("message_id", printable(msg.ID)))
				return
			}
			done <- err
		}()
		err = f(callCtx)
		normal = true
	}()

	select {
	case err := <-done:
		return callResult{err: err, expired: context.Cause(callCtx) == ErrHandlerTimeout} //nolint:errorlint // the cause is ours
	case <-callCtx.Done():
	}
	expired := context.Cause(callCtx) == ErrHandlerTimeout //nolint:errorlint // the cause is ours
	grace := time.NewTimer(in.cfg.WatchdogGrace)
	defer grace.Stop()
	select {
	case err := <-done:
		return callResult{err: err, expired: expired}
	case <-grace.C:
	}
	if givenUp.Swap(true) {
		return callResult{err: <-done, expired: expired} // it returned at the same moment
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

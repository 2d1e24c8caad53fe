package webhook

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/semel-go/semel/handler"
)

// errGoexit is of an Accept that ended its goroutine.
var errGoexit = errors.New("function Accept called runtime.Goexit")

// inTime returns accept so that it returns when its context ends, whatever accept
// does. Accept is the user's: it may not look at its context. It is left to end by
// itself then, and the next copy of the message meets what it did.
func inTime(accept AcceptFunc) AcceptFunc {
	type result struct {
		outcome handler.Outcome
		err     error
	}
	return func(ctx context.Context, msg *handler.Message) (handler.Outcome, error) {
		done := make(chan result, 1) // room, so that one who comes late waits for nobody
		go func() {
			r := result{err: errGoexit}
			defer func() {
				if value := recover(); value != nil {
					r = result{err: fmt.Errorf("function Accept panicked: %v\n%s", value, debug.Stack())}
				}
				done <- r
			}()
			r.outcome, r.err = accept(ctx, msg)
		}()
		select {
		case r := <-done:
			return r.outcome, r.err
		case <-ctx.Done():
		}
		select {
		case r := <-done: // at the same moment
			return r.outcome, r.err
		default:
			return 0, context.Cause(ctx)
		}
	}
}

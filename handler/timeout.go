package handler

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// ErrRouteTimeout is returned by [Timeout] when its route ran out of time. It
// is an ordinary failed attempt.
var ErrRouteTimeout = errors.New("route timeout")

// Timeout returns a middleware that gives its route less time than the
// consumer's handler timeout. It cancels the context after limit; a handler
// that ignores its context is not stopped by it (the engine's watchdog is).
// An error after the limit wraps [ErrRouteTimeout].
//
// It panics if limit is not positive.
func Timeout(limit time.Duration) Middleware {
	if limit <= 0 {
		panic("handler: Timeout limit must be positive")
	}
	return func(next Func) Func {
		return func(ctx context.Context, tx pgx.Tx, msg *Message) error {
			ctx, cancel := context.WithTimeoutCause(ctx, limit, ErrRouteTimeout)
			defer cancel()
			err := next(ctx, tx, msg)
			if err != nil && context.Cause(ctx) == ErrRouteTimeout { //nolint:errorlint // the cause is ours, set above
				return fmt.Errorf("%w after %s: %w", ErrRouteTimeout, limit, err)
			}
			return err
		}
	}
}

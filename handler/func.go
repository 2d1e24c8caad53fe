package handler

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// Func handles one message. Its writes go through tx, which the engine has
// begun and will end; the claim of the message is already in it. See the
// package comment for what its error means.
type Func func(ctx context.Context, tx pgx.Tx, msg *Message) error

// Middleware wraps a [Func]. It runs inside the transaction and must be safe
// for concurrent use. A message must never make it panic.
type Middleware func(Func) Func

// Chain wraps h in middlewares; the first one listed runs first.
func Chain(h Func, middlewares ...Middleware) Func {
	for i := len(middlewares) - 1; i >= 0; i-- {
		h = middlewares[i](h)
	}
	return h
}

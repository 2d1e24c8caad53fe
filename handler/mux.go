package handler

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/jackc/pgx/v5"
)

// ErrUnknownType is returned by [Mux] for a message whose type has no route.
// It is always [Permanent]: redelivery cannot bring a route.
var ErrUnknownType = errors.New("unknown message type")

// Mux returns a handler that routes a message by its type. A message whose
// type has no route goes to fallback; if that is nil it fails with
// [ErrUnknownType]. The map is copied.
//
// It panics if a route is nil.
func Mux(routes map[string]Func, fallback Func) Func {
	for kind, h := range routes {
		if h == nil {
			panic(fmt.Sprintf("handler: Mux route %q is nil", kind))
		}
	}
	routes = maps.Clone(routes)
	if fallback == nil {
		fallback = func(_ context.Context, _ pgx.Tx, msg *Message) error {
			return Permanent(fmt.Errorf("route message of type %.255q: %w: add a route, or handler.Skip as the fallback", msg.Type, ErrUnknownType))
		}
	}
	return func(ctx context.Context, tx pgx.Tx, msg *Message) error {
		if h, ok := routes[msg.Type]; ok {
			return h(ctx, tx, msg)
		}
		return fallback(ctx, tx, msg)
	}
}

// Skip is a handler that does nothing: the message ends as [Skipped]. It is for
// routes, and the fallback of a [Mux], whose messages a consumer has no part in.
func Skip(ctx context.Context, _ pgx.Tx, _ *Message) error {
	if cause := CauseFrom(ctx); cause != nil {
		cause.End(Skipped)
	}
	return nil
}

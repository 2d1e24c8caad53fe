package handler

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// ErrPayloadTooLarge is returned by [MaxPayload] for a message above its limit.
// It is always [Permanent]: redelivery cannot shrink a payload.
var ErrPayloadTooLarge = errors.New("payload too large")

// MaxPayload returns a middleware that refuses a message of more than limit
// bytes with [ErrPayloadTooLarge], before next sees it.
//
// It panics if limit is not positive.
func MaxPayload(limit int) Middleware {
	if limit <= 0 {
		panic("handler: MaxPayload limit must be positive")
	}
	return func(next Func) Func {
		return func(ctx context.Context, tx pgx.Tx, msg *Message) error {
			if size := len(msg.Payload); size > limit {
				return Permanent(fmt.Errorf("%w: %d bytes, limit %d", ErrPayloadTooLarge, size, limit))
			}
			return next(ctx, tx, msg)
		}
	}
}

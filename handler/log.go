package handler

import (
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
)

// Log returns a middleware that logs each run of a handler at debug level:
// the message's id and type, how long it took, and its error. Nil is
// [slog.Default]. It logs no payload. What a failure means for the message is
// logged by the engine.
func Log(logger *slog.Logger) Middleware {
	return func(next Func) Func {
		return func(ctx context.Context, tx pgx.Tx, msg *Message) error {
			l := logger
			if l == nil {
				l = slog.Default()
			}
			if !l.Enabled(ctx, slog.LevelDebug) {
				return next(ctx, tx, msg)
			}
			start := time.Now()
			err := next(ctx, tx, msg)
			l.LogAttrs(ctx, slog.LevelDebug, "handler ran",
				slog.String("message_id", msg.ID), slog.String("message_type", msg.Type),
				slog.Duration("took", time.Since(start)), slog.Any("error", err))
			return err
		}
	}
}

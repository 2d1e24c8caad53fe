package main

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/internal/chaos/wire"
)

// errDoomed fails a message of type [wire.Doomed] every time.
var errDoomed = errors.New("this message fails every time")

// handle writes an effect that can be counted in two ways: a row, and a sum.
// No unique key knows the message, so that a second effect is not hidden.
func handle(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
	return handler.JSON(func(ctx context.Context, tx pgx.Tx, e wire.Effect, msg *handler.Message) error {
		const row = `INSERT INTO effects (message, key, n) VALUES ($1, $2, $3)`
		if _, err := tx.Exec(ctx, row, msg.ID, string(msg.Key), e.N); err != nil {
			return err
		}
		const sum = `UPDATE balances SET balance = balance + $2 WHERE key = $1`
		if _, err := tx.Exec(ctx, sum, string(msg.Key), e.Amount); err != nil {
			return err
		}
		if msg.Type == wire.Doomed { // after its writes: they must not stay
			return errDoomed
		}
		return nil
	})(ctx, tx, msg)
}

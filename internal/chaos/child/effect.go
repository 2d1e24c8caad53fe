package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
	"github.com/semel-go/semel/internal/chaos/wire"
)

// Why messages fail that are made to, see package wire.
var (
	errDoomed = errors.New("this message fails every time")
	errFlaky  = errors.New("this message fails now and then")
	errBroken = errors.New("this message was not mended yet")
)

// lateness is how long a message of type [wire.Late] stays away, unless somebody
// has it handled at once.
const lateness = time.Hour

// retryOf gives the doomed one attempt from the inbox.
func retryOf(err error) inbox.Retry {
	if errors.Is(err, errDoomed) {
		return inbox.Retry{Attempts: 3}
	}
	return inbox.Retry{}
}

// work returns a handler that writes an effect which can be counted in two ways:
// a row, and a sum. No unique key knows the message, so that a second effect is
// not hidden.
func work(t *trap) handler.Func {
	return handler.JSON(func(ctx context.Context, tx pgx.Tx, e wire.Effect, msg *handler.Message) error {
		const row = `INSERT INTO effects (message, key, n) VALUES ($1, $2, $3)`
		if _, err := tx.Exec(ctx, row, msg.ID, string(msg.Key), e.N); err != nil {
			return err
		}
		const sum = `UPDATE balances SET balance = balance + $2 WHERE key = $1`
		if _, err := tx.Exec(ctx, sum, string(msg.Key), e.Amount); err != nil {
			return err
		}
		switch msg.Type { // after its writes: they must not stay
		case wire.Doomed:
			return errDoomed
		case wire.Flaky:
			if rand.IntN(4) > 0 {
				return errFlaky
			}
		case wire.Broken, wire.Late:
			return broken(ctx, tx, msg, t)
		}
		return nil
	})
}

// broken fails until the message was mended. Then this is its replay.
func broken(ctx context.Context, tx pgx.Tx, msg *handler.Message, t *trap) error {
	var mended bool
	if err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM mended WHERE message = $1)`, msg.ID).Scan(&mended); err != nil {
		return err
	}
	switch {
	case msg.Type == wire.Late && !mended:
		return handler.RetryAfter(lateness, errBroken)
	case !mended:
		return handler.Permanent(errBroken)
	case msg.Type == wire.Broken:
		t.begins(wire.MidReplay, wire.CopyOf(msg))
	}
	return nil
}

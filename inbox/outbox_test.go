package inbox_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/inbox"
	"github.com/semel-go/semel/outbox"
)

// An event written in a handler commits with its message and says by itself
// what caused it. Those of a failed attempt never were, and wake nobody.
func TestProcess_WritesEvents(t *testing.T) {
	t.Parallel()

	b := setup(t)
	woken, attempts := 0, 0
	writer := outbox.NewWriter(b.Schema).AfterCommit(func() { woken++ })
	in := b.inbox(t, func(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
		err := writer.Write(ctx, tx, outbox.Event{AggregateType: "order", AggregateID: "1", Type: "OrderPaid"})
		if attempts++; attempts == 1 {
			err = errors.New("once more")
		}
		return err
	}, inbox.Config{})

	for range 2 {
		_, err := in.Process(t.Context(), message("evt_1"))
		require.NoError(t, err)
	}

	require.Equal(t, 2, attempts)
	require.Equal(t, 1, woken)
	var events int
	var causation, correlation, source string
	require.NoError(t, b.Pool.QueryRow(t.Context(), `SELECT count(*), min(causation_id), min(correlation_id), min(source) FROM outbox`).
		Scan(&events, &causation, &correlation, &source))
	require.Equal(t, []any{1, "evt_1", "evt_1", "shipping"}, []any{events, causation, correlation, source})
}

// What a handler has called after the commit cannot unsettle its message.
func TestProcess_AfterCommitPanics(t *testing.T) {
	t.Parallel()

	b := setup(t)
	in := b.inbox(t, func(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
		handler.CauseFrom(ctx).AfterCommit(func() { panic("no") })
		return effect(ctx, tx, msg)
	}, inbox.Config{})

	outcome, err := in.Process(t.Context(), message("evt_1"))

	require.NoError(t, err)
	require.Equal(t, handler.Processed, outcome)
	require.Equal(t, 1, b.effects(t, "evt_1"))
}

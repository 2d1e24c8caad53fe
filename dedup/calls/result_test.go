package calls_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/dedup/calls"
	"github.com/semel-go/semel/handler"
)

func TestResult_NotDone(t *testing.T) {
	t.Parallel()

	b := setup(t)
	_, err := b.result(t)
	require.ErrorIs(t, err, calls.ErrNotDone)
	require.ErrorContains(t, err, "it was not made")

	b.lost(t, calls.Options{})
	_, err = b.result(t)
	require.ErrorIs(t, err, calls.ErrNotDone)
	require.ErrorContains(t, err, "it is started")
	require.False(t, handler.IsPermanent(err))

	require.NoError(t, pgx.BeginFunc(t.Context(), b.Pool, func(tx pgx.Tx) error {
		_, err = b.ledger.Result(t.Context(), tx, b.msg, step)
		return nil
	}))
	require.ErrorContains(t, err, "its context is not that of a consumer's handler")
}

// A statement that fails in the handler's transaction says so as one of Semel's own.
func TestResult_Outage(t *testing.T) {
	t.Parallel()

	b := setup(t)
	tx, err := b.Pool.Begin(t.Context())
	require.NoError(t, err)
	require.NoError(t, tx.Rollback(t.Context()))

	_, err = b.ledger.Result(b.context(t.Context()), tx, b.msg, step)

	require.True(t, handler.IsOutage(err))
}

package handler_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
)

// untilEnd waits for the end of its context, as a call that hangs does.
func untilEnd(ctx context.Context, _ pgx.Tx, _ *handler.Message) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestTimeout_CancelsTheRoute(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		start := time.Now()

		err := handler.Timeout(5*time.Second)(untilEnd)(t.Context(), nil, &handler.Message{})

		require.Equal(t, 5*time.Second, time.Since(start))
		require.ErrorIs(t, err, handler.ErrRouteTimeout)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.EqualError(t, err, "route timeout after 5s: context deadline exceeded")
		require.False(t, handler.IsPermanent(err), "it is an ordinary failed attempt")
	})
}

func TestTimeout_LeavesTheRestAlone(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name string
		next handler.Func
		want error
	}{
		{
			name: "Success",
			next: func(context.Context, pgx.Tx, *handler.Message) error { return nil },
		},
		{
			name: "ErrorInTime",
			next: func(context.Context, pgx.Tx, *handler.Message) error { return errCause },
			want: errCause,
		},
		{
			name: "SuccessTooLate", // it ignores its context; the engine's watchdog stops those that never come back
			next: func(context.Context, pgx.Tx, *handler.Message) error {
				time.Sleep(time.Minute)
				return nil
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			synctest.Test(t, func(t *testing.T) {
				err := handler.Timeout(5*time.Second)(tt.next)(t.Context(), nil, &handler.Message{})

				require.Equal(t, tt.want, err)
			})
		})
	}
}

// A shutdown is not a failure of the route.
func TestTimeout_ParentsEndIsNotOurs(t *testing.T) {
	t.Parallel()

	errDrain := errors.New("drain time is over")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errDrain)
	var cause error
	h := handler.Timeout(time.Hour)(func(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
		cause = context.Cause(ctx)
		return untilEnd(ctx, tx, msg)
	})

	err := h(ctx, nil, &handler.Message{})

	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, handler.ErrRouteTimeout)
	require.Equal(t, errDrain, cause, "the route sees why")
}

func TestTimeout_ImpossibleLimit(t *testing.T) {
	t.Parallel()

	require.Panics(t, func() { handler.Timeout(0) })
	require.Panics(t, func() { handler.Timeout(-time.Second) })
}

package handler_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
)

func TestCause(t *testing.T) {
	t.Parallel()

	require.Nil(t, handler.CauseFrom(t.Context()))

	cause := &handler.Cause{Consumer: "shipping", Message: &handler.Message{ID: "evt_1"}}
	ctx := handler.WithCause(t.Context(), cause)
	require.Same(t, cause, handler.CauseFrom(ctx))

	var called []int
	cause.AfterCommit(func() { called = append(called, 1) })
	handler.CauseFrom(ctx).AfterCommit(func() { called = append(called, 2) })
	require.Empty(t, called)
	cause.Committed()
	require.Equal(t, []int{1, 2}, called)
	cause.Committed()
	require.Len(t, called, 2, "once")
}

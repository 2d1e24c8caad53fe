package handler_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
)

func TestChain_FirstListedRunsFirst(t *testing.T) {
	t.Parallel()

	var ran []string
	named := func(name string) handler.Middleware {
		return func(next handler.Func) handler.Func {
			return func(ctx context.Context, tx pgx.Tx, msg *handler.Message) error {
				ran = append(ran, name)
				return next(ctx, tx, msg)
			}
		}
	}

	err := handler.Chain(failing(errCause), named("a"), named("b"), named("c"))(t.Context(), nil, &handler.Message{})

	require.Equal(t, errCause, err)
	require.Equal(t, []string{"a", "b", "c"}, ran)
	require.Equal(t, errCause, handler.Chain(failing(errCause))(t.Context(), nil, &handler.Message{}), "no middleware")
}

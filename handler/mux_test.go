package handler_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
)

func TestMux(t *testing.T) {
	t.Parallel()

	errPaid, errUntyped, errFallback := errors.New("paid ran"), errors.New("untyped ran"), errors.New("fallback ran")
	routes := map[string]handler.Func{"order.paid": failing(errPaid), "": failing(errUntyped)}

	tests := []struct {
		name     string
		kind     string
		fallback handler.Func
		want     error
	}{
		{name: "Route", kind: "order.paid", want: errPaid},
		{name: "RouteBeforeFallback", kind: "order.paid", fallback: failing(errFallback), want: errPaid},
		{name: "NoTypeIsATypeToo", kind: "", want: errUntyped},
		{name: "TypesAreExact", kind: "Order.Paid", want: handler.ErrUnknownType},
		{name: "Unknown", kind: "order.refunded", want: handler.ErrUnknownType},
		{name: "Fallback", kind: "order.refunded", fallback: failing(errFallback), want: errFallback},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			err := handler.Mux(routes, tt.fallback)(t.Context(), nil, &handler.Message{Type: tt.kind})

			require.ErrorIs(t, err, tt.want)
			require.Equal(t, errors.Is(tt.want, handler.ErrUnknownType), handler.IsPermanent(err))
		})
	}
}

func TestMux_UnknownTypeSaysWhatToDo(t *testing.T) {
	t.Parallel()

	h := handler.Mux(nil, nil)

	require.EqualError(t, h(t.Context(), nil, &handler.Message{Type: "order.paid", Payload: []byte("secret")}),
		`route message of type "order.paid": unknown message type: add a route, or handler.Skip as the fallback`)

	// A type is data from outside: its text is quoted and cut.
	err := h(t.Context(), nil, &handler.Message{Type: "line\nbreak" + strings.Repeat("x", 100_000)})
	require.NotContains(t, err.Error(), "\n")
	require.Less(t, len(err.Error()), 500)
}

func TestMux_CopiesItsRoutes(t *testing.T) {
	t.Parallel()

	routes := map[string]handler.Func{"order.paid": failing(errCause)}
	h := handler.Mux(routes, nil)
	delete(routes, "order.paid")

	require.Equal(t, errCause, h(t.Context(), nil, &handler.Message{Type: "order.paid"}))
}

func TestMux_NilRoute(t *testing.T) {
	t.Parallel()

	require.PanicsWithValue(t, `handler: Mux route "order.paid" is nil`, func() {
		handler.Mux(map[string]handler.Func{"order.paid": nil}, nil)
	})
}

// failing returns a handler that fails with err: proof that it ran.
func failing(err error) handler.Func {
	return func(context.Context, pgx.Tx, *handler.Message) error { return err }
}

func TestSkip(t *testing.T) {
	t.Parallel()

	var cause handler.Cause
	skips := handler.Mux(nil, handler.Skip)

	require.NoError(t, skips(handler.WithCause(t.Context(), &cause), nil, &handler.Message{Type: "order.paid"}))
	require.Equal(t, handler.Skipped, cause.Outcome())
	require.NoError(t, skips(t.Context(), nil, &handler.Message{}), "outside of the engine")
}

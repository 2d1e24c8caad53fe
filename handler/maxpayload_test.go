package handler_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
)

func TestMaxPayload(t *testing.T) {
	t.Parallel()

	errNext := errors.New("next ran") // proves that next ran and that its error passes untouched

	tests := []struct {
		name          string
		payload       string
		want          error
		wantPermanent bool
	}{
		{name: "Empty", payload: "", want: errNext},
		{name: "AtLimit", payload: "1234", want: errNext},
		{name: "OverLimit", payload: "12345", want: handler.ErrPayloadTooLarge, wantPermanent: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			h := handler.MaxPayload(4)(func(context.Context, pgx.Tx, *handler.Message) error { return errNext })

			err := h(t.Context(), nil, &handler.Message{Payload: []byte(tt.payload)})

			require.ErrorIs(t, err, tt.want)
			require.Equal(t, tt.wantPermanent, handler.IsPermanent(err))
		})
	}
}

func TestMaxPayload_SaysTheSizes(t *testing.T) {
	t.Parallel()

	h := handler.MaxPayload(4)(func(context.Context, pgx.Tx, *handler.Message) error { return nil })

	require.EqualError(t, h(t.Context(), nil, &handler.Message{Payload: []byte("secret")}), "payload too large: 6 bytes, limit 4")
}

func TestMaxPayload_ImpossibleLimit(t *testing.T) {
	t.Parallel()

	require.Panics(t, func() { handler.MaxPayload(0) })
	require.Panics(t, func() { handler.MaxPayload(-1) })
}

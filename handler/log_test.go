package handler_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
)

func TestLog(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name      string
		err       error
		wantError any
	}{
		{name: "Success", wantError: nil},
		{name: "Failure", err: errCause, wantError: errCause.Error()},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			var buffer bytes.Buffer
			logger := slog.New(slog.NewJSONHandler(&buffer, &slog.HandlerOptions{Level: slog.LevelDebug}))
			h := handler.Log(logger)(func(context.Context, pgx.Tx, *handler.Message) error { return tt.err })

			err := h(t.Context(), nil, &handler.Message{ID: "evt_1", Type: "order.paid", Payload: []byte("secret")})

			require.Equal(t, tt.err, err, "it passes untouched")
			require.NotContains(t, buffer.String(), "secret")
			var line map[string]any
			require.NoError(t, json.Unmarshal(buffer.Bytes(), &line), "one line")
			require.Contains(t, line, "time")
			require.IsType(t, 0.0, line["took"])
			delete(line, "time")
			delete(line, "took")
			require.Equal(t, map[string]any{
				"level": "DEBUG", "msg": "handler ran", "message_id": "evt_1", "message_type": "order.paid", "error": tt.wantError,
			}, line)
		})
	}
}

func TestLog_SilentAboveDebug(t *testing.T) {
	t.Parallel()

	var buffer bytes.Buffer
	h := handler.Log(slog.New(slog.NewJSONHandler(&buffer, nil)))(func(context.Context, pgx.Tx, *handler.Message) error { return errCause })

	require.Equal(t, errCause, h(t.Context(), nil, &handler.Message{}))
	require.Empty(t, buffer.String())
}

func TestLog_NilIsTheDefaultLogger(t *testing.T) {
	t.Parallel()

	h := handler.Log(nil)(func(context.Context, pgx.Tx, *handler.Message) error { return errCause })

	require.Equal(t, errCause, h(t.Context(), nil, &handler.Message{}))
}

package webhook_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http/httptest"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/transports/webhook"
)

func BenchmarkStripe(b *testing.B) {
	event, err := os.ReadFile("../../bench/webhook_event.json")
	require.NoError(b, err)
	preset := webhook.Stripe("whsec_example_not_a_real_secret")
	hook, err := webhook.NewHandler(nil, preset, webhook.Config{
		Clock: at(signedAt), Logger: slog.New(slog.DiscardHandler),
		Accept: func(context.Context, *handler.Message) (handler.Outcome, error) { return handler.Stored, nil },
	})
	require.NoError(b, err)
	r := httptest.NewRequest("POST", "/", bytes.NewReader(event))
	r.Header.Set("Content-Type", "application/json")
	require.NoError(b, preset.Sign(r, signedAt))
	b.Run("ServeHTTP", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			r.Body, _ = r.GetBody()
			hook.ServeHTTP(httptest.NewRecorder(), r)
		}
	})
	b.Run("Fingerprint", func(b *testing.B) {
		b.ReportAllocs()
		msg := &handler.Message{Payload: event}
		for b.Loop() {
			preset.Fingerprint(msg)
		}
	})
}

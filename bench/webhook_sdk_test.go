package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-github/v74/github"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/require"
	stripewebhook "github.com/stripe/stripe-go/v82/webhook"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/transports/webhook"
)

// The presets against the providers' own libraries, which Semel itself does not
// compile: what we sign they take, what they sign we take, and of both a changed byte
// is refused.

const sdkBody = `{"id":"evt_1","object":"event","api_version":"2025-08-27.basil","type":"charge.succeeded","data":{"object":{"id":"ch_1","note":"çay"}}}`

// sdk is a provider's own library.
type sdk struct {
	name    string
	preset  webhook.Preset
	headers map[string]string
	accepts func(r *http.Request, payload []byte) error
	sign    func(t *testing.T, r *http.Request, payload []byte) // nil: it has no signer
}

func sdks(t *testing.T) []sdk {
	t.Helper()
	const stripeSecret, githubSecret = "whsec_example_not_a_real_secret", "example-github-secret"
	standardSecret := "whsec_" + base64.StdEncoding.EncodeToString([]byte("example-secret-example-secret-32"))
	standard, err := standardwebhooks.NewWebhook(standardSecret)
	require.NoError(t, err)
	return []sdk{
		{
			name: "Stripe", preset: webhook.Stripe(stripeSecret),
			accepts: func(r *http.Request, payload []byte) error {
				event, err := stripewebhook.ConstructEventWithOptions(payload, r.Header.Get("Stripe-Signature"), stripeSecret,
					stripewebhook.ConstructEventOptions{IgnoreAPIVersionMismatch: true})
				if err == nil && event.ID != "evt_1" {
					err = io.ErrUnexpectedEOF
				}
				return err
			},
			sign: func(_ *testing.T, r *http.Request, payload []byte) {
				signed := stripewebhook.GenerateTestSignedPayload(&stripewebhook.UnsignedPayload{Payload: payload, Secret: stripeSecret, Timestamp: time.Now()})
				r.Header.Set("Stripe-Signature", signed.Header)
			},
		},
		{
			name: "StandardWebhooks", preset: webhook.StandardWebhooks(standardSecret), headers: map[string]string{"webhook-id": "msg_1"},
			accepts: func(r *http.Request, payload []byte) error { return standard.Verify(payload, r.Header) },
			sign: func(t *testing.T, r *http.Request, payload []byte) {
				now := time.Now()
				signature, err := standard.Sign("msg_1", now, payload)
				require.NoError(t, err)
				r.Header.Set("webhook-timestamp", jsonOf(t, now.Unix()))
				r.Header.Set("webhook-signature", signature)
			},
		},
		{
			name: "GitHub", preset: webhook.GitHub(githubSecret), headers: map[string]string{"X-GitHub-Event": "push", "X-GitHub-Delivery": "1"},
			accepts: func(r *http.Request, payload []byte) error {
				r.Body = io.NopCloser(bytes.NewReader(payload))
				got, err := github.ValidatePayload(r, []byte(githubSecret))
				if err == nil && !bytes.Equal(got, payload) {
					err = io.ErrUnexpectedEOF
				}
				return err
			},
		},
	}
}

func jsonOf(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	require.NoError(t, err)
	return string(raw)
}

func (s sdk) request(payload string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/hook", strings.NewReader(payload))
	r.Header.Set("Content-Type", "application/json")
	for name, value := range s.headers {
		r.Header.Set(name, value)
	}
	return r
}

func TestSDK(t *testing.T) {
	t.Parallel()

	changed := strings.Replace(sdkBody, "ch_1", "ch_2", 1)
	for _, s := range sdks(t) {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()

			ours := s.request(sdkBody)
			require.NoError(t, s.preset.Sign(ours, time.Now()))
			require.NoError(t, s.accepts(ours, []byte(sdkBody)), "they take what we sign")
			require.Error(t, s.accepts(ours, []byte(changed)))

			var stored []*handler.Message
			hook, err := webhook.NewHandler(nil, s.preset, webhook.Config{
				Logger: slog.New(slog.DiscardHandler),
				Accept: func(_ context.Context, msg *handler.Message) (handler.Outcome, error) {
					stored = append(stored, msg)
					return handler.Processed, nil
				},
			})
			require.NoError(t, err)
			status := func(r *http.Request) int {
				w := httptest.NewRecorder()
				hook.ServeHTTP(w, r)
				return w.Code
			}
			if s.sign == nil {
				t.Log("it has no signer")
				return
			}
			theirs := s.request(sdkBody)
			s.sign(t, theirs, []byte(sdkBody))
			require.Equal(t, http.StatusOK, status(theirs), "we take what they sign")
			require.Len(t, stored, 1)
			require.Equal(t, sdkBody, string(stored[0].Payload))
			forged := s.request(changed)
			s.sign(t, forged, []byte(sdkBody))
			require.Equal(t, http.StatusUnauthorized, status(forged))
			require.Len(t, stored, 1)
		})
	}
}

// What a publisher sends, the receiver's own library takes: with the old secret and with
// the new one, also an id that is no UUID.
func TestSDK_Publisher(t *testing.T) {
	t.Parallel()

	secretOf := func(text string) string { return "whsec_" + base64.StdEncoding.EncodeToString([]byte(text)) }
	old, fresh := secretOf("example-secret-example-secret-32"), secretOf("another-secret-another-secret-32")
	for name, tt := range map[string]struct{ receiver, id string }{
		"Old": {receiver: old, id: "01912d68-783e-7a03-8467-5661c1243ad4"},
		"New": {receiver: fresh, id: "01912d68-783e-7a03-8467-5661c1243ad4"},
		"Dot": {receiver: old, id: "order.42 çay"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			receiver, err := standardwebhooks.NewWebhook(tt.receiver)
			require.NoError(t, err)
			endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				payload, err := io.ReadAll(r.Body)
				if err != nil || receiver.Verify(payload, r.Header) != nil || receiver.Verify(append(payload, ' '), r.Header) == nil {
					w.WriteHeader(http.StatusUnauthorized)
				}
			}))
			t.Cleanup(endpoint.Close)
			publisher, err := webhook.NewPublisher(endpoint.URL, fresh, webhook.PublisherConfig{MoreSecrets: []string{old}})
			require.NoError(t, err)
			t.Cleanup(publisher.CloseIdleConnections)

			errs := publisher.Publish(t.Context(), []*handler.Message{{ID: tt.id, Payload: []byte(sdkBody)}})

			require.NoError(t, errs[0])
		})
	}
}

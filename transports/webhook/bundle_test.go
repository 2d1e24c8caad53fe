package webhook_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/transports/webhook"
)

// body is the body of all vectors: 50 bytes, no newline at the end.
const body = `{"id":"evt_example_1","amount":1999,"note":"çay"}`

// signedAt is the time of all vectors.
var signedAt = time.Unix(1_700_000_000, 0)

func at(t time.Time) func() time.Time { return func() time.Time { return t } }

// shelf stores messages as an inbox does: an id once.
type shelf struct {
	fail func(ctx context.Context) error // nil: it does not

	mu   sync.Mutex // guards the fields below
	msgs []*handler.Message
	seen map[string]bool
}

func (s *shelf) Store(ctx context.Context, msg *handler.Message) (handler.Outcome, error) {
	if s.fail != nil {
		if err := s.fail(ctx); err != nil {
			return 0, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen[msg.ID] {
		return handler.Duplicate, nil
	}
	if s.seen == nil {
		s.seen = map[string]bool{}
	}
	s.seen[msg.ID] = true
	s.msgs = append(s.msgs, msg)
	return handler.Stored, nil
}

func (s *shelf) stored() []*handler.Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.msgs
}

// provider is a preset in a test: how to make it with secrets, and which fit.
type provider struct {
	name    string
	preset  func(secrets ...string) webhook.Preset
	secrets [2]string
	headers map[string]string // set before signing
	id      string            // of the message whose body is body
	header  string            // of the signature
}

func standardSecret(raw string) string {
	return "whsec_" + base64.StdEncoding.EncodeToString([]byte(raw))
}

func providers() []provider {
	return []provider{
		{
			name: "Stripe", preset: webhook.Stripe, secrets: [2]string{"whsec_example_not_a_real_secret", "whsec_another_example_secret"},
			id: "stripe:evt_example_1", header: "Stripe-Signature",
		},
		{
			name: "GitHub", preset: webhook.GitHub, secrets: [2]string{"example-github-secret", "another secret"},
			headers: map[string]string{"X-GitHub-Event": "push", "X-GitHub-Delivery": "72d3162e-cc78-11e3-81ab-4c9367dc0958"},
			id:      "github:72d3162e-cc78-11e3-81ab-4c9367dc0958", header: "X-Hub-Signature-256",
		},
		{
			name: "StandardWebhooks", preset: webhook.StandardWebhooks,
			secrets: [2]string{standardSecret("example-secret-example-secret-32"), standardSecret("another-secret-another-secret-32")},
			headers: map[string]string{"webhook-id": "msg_example_1"},
			id:      "standard:msg_example_1", header: "Webhook-Signature",
		},
		{
			name: "HMAC", secrets: [2]string{"example-generic-secret", "another-generic-secret"},
			preset: func(secrets ...string) webhook.Preset {
				return webhook.HMAC(webhook.HMACConfig{
					Secrets: secrets, Header: "X-Signature", Prefix: "v1=", Separator: ",",
					Template: "v0:{timestamp}:{body}", TimestampHeader: "X-Timestamp", TimestampUnit: time.Second, ID: "/id",
				})
			},
			id: "hmac:evt_example_1", header: "X-Signature",
		},
	}
}

// request is one that the provider has signed.
func (p provider) request(t testing.TB, preset webhook.Preset, payload string, when time.Time) *http.Request {
	t.Helper()
	r := p.unsigned(payload)
	require.NoError(t, preset.Sign(r, when))
	return r
}

func (p provider) unsigned(payload string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/hook", strings.NewReader(payload))
	r.Header.Set("Content-Type", "application/json; charset=utf-8")
	for name, value := range p.headers {
		r.Header.Set(name, value)
	}
	return r
}

func setBody(r *http.Request, payload string) {
	r.Body, r.ContentLength = http.NoBody, 0
	fresh := httptest.NewRequest(http.MethodPost, "/hook", strings.NewReader(payload))
	r.Body, r.ContentLength = fresh.Body, fresh.ContentLength
}

// eachProvider runs a test against every preset.
func eachProvider(t *testing.T, test func(t *testing.T, p provider)) {
	t.Helper()
	for _, p := range providers() {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()

			test(t, p)
		})
	}
}

// testBundle is a handler and what it stored and logged.
type testBundle struct {
	*webhook.Handler
	shelf *shelf
	log   *bytes.Buffer
}

// setup makes a handler whose clock stands at signedAt, unless cfg has one.
func setup(t testing.TB, preset webhook.Preset, cfg webhook.Config) *testBundle {
	t.Helper()
	b := &testBundle{shelf: &shelf{}, log: &bytes.Buffer{}}
	if cfg.Clock == nil {
		cfg.Clock = at(signedAt)
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.NewTextHandler(b.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	var err error
	b.Handler, err = webhook.NewHandler(b.shelf, preset, cfg)
	require.NoError(t, err)
	return b
}

// serve answers one request.
func (b *testBundle) serve(r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	b.ServeHTTP(w, r)
	return w
}

// requireRefused is what becomes of a request that nobody vouches for.
func (b *testBundle) requireRefused(t testing.TB, status int, text string, r *http.Request) {
	t.Helper()
	w := b.serve(r)
	require.Equal(t, status, w.Code, w.Body.String())
	require.Equal(t, text+"\n", w.Body.String())
	require.Empty(t, b.shelf.stored())
}

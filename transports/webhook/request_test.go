package webhook_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/transports/webhook"
)

// sentAs is the one request that a message becomes.
func sentAs(t *testing.T, cfg webhook.PublisherConfig, msg *handler.Message) (*http.Request, []byte) {
	t.Helper()
	e := listen(t, status(http.StatusOK))
	require.NoError(t, publish(t, sender(t, e.URL+"/hook?a=b", cfg), msg))
	require.Len(t, e.seen(), 1)
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.requests[0], e.bodies[0]
}

// What is sent, name by name.
func TestPublisher_Request(t *testing.T) {
	t.Parallel()

	r, sent := sentAs(t, webhook.PublisherConfig{Clock: at(signedAt)}, &handler.Message{
		ID: "evt_example_1", Type: "order.paid", Key: []byte("42"), Version: 7, CorrelationID: "corr 1", CausationID: "evt_0", Source: "/shop",
		ContentType: "application/vnd.shop+json", OccurredAt: signedAt, Payload: []byte(body),
		Headers: handler.Headers{
			{Name: "x-tenant", Value: []byte("eu")},
			{Name: "x-hop", Value: []byte("a")},
			{Name: "X-Hop", Value: []byte("b")},
			{Name: "x-empty"},
			{Name: "semel-attempt", Value: []byte("2")},
		},
	})

	require.Equal(t, http.MethodPost, r.Method)
	require.Equal(t, "/hook?a=b", r.RequestURI)
	require.Equal(t, body, string(sent))
	require.Equal(t, int64(len(body)), r.ContentLength)
	preset := webhook.StandardWebhooks(senderSecret)
	signed, err := http.NewRequest(http.MethodPost, "/", strings.NewReader(body))
	require.NoError(t, err)
	signed.Header.Set("webhook-id", "evt_example_1")
	require.NoError(t, preset.Sign(signed, signedAt))
	require.Equal(t, http.Header{
		"Webhook-Id": {"evt_example_1"}, "Webhook-Timestamp": {"1700000000"}, "Webhook-Signature": signed.Header["Webhook-Signature"],
		"Idempotency-Key": {"evt_example_1"}, "User-Agent": {"semel"}, "Content-Length": {"50"}, "Content-Type": {"application/vnd.shop+json"},
		"Message-Id": {"evt_example_1"}, "Message-Type": {"order.paid"}, "Message-Key": {"42"}, "Message-Version": {"7"},
		"Correlation-Id": {"corr%201"}, "Causation-Id": {"evt_0"}, "Source": {"/shop"}, "Occurred-At": {"2023-11-14T22:13:20Z"},
		"X-Tenant": {"eu"}, "X-Hop": {"a", "b"}, "X-Empty": {""}, "Semel-Attempt": {"2"},
	}, withoutAccept(r.Header))
}

// withoutAccept is what we set, not net/http.
func withoutAccept(h http.Header) http.Header {
	h = h.Clone()
	h.Del("Accept-Encoding")
	return h
}

// What HTTP cannot carry is encoded or left out. Nothing that a message says changes
// whom it is sent to, how, or by whom it is signed.
func TestPublisher_HeadersThatAreNone(t *testing.T) {
	t.Parallel()

	text := func(name, value string) handler.Header { return handler.Header{Name: name, Value: []byte(value)} }
	r, sent := sentAs(t, webhook.PublisherConfig{}, &handler.Message{
		ID: "evt_1", Type: "çay\r\nX-Injected: yes", Key: []byte{0, 0xff, '%'}, ContentType: "text/plain\r\nX-Injected: yes", Payload: []byte("no json"),
		Headers: handler.Headers{
			text("x-text", " 100% \"sure\" çay\n"), text("bad name", "1"), text("", "1"), text("x:y", "1"), text("x\r\nX-Injected", "1"),
			text("Host", "evil.example"), text("Content-Length", "1"), text("Transfer-Encoding", "chunked"), text("Expect", "100-continue"), text("Connection", "close"),
			text("Authorization", "Bearer hunter2"), text("Cookie", "a=hunter2"), text("Webhook-Id", "other"), text("WEBHOOK-SIGNATURE", "v1,x"), text("svix-id", "x"),
			text("idempotency-key", "other"), text("Message-Id", "other"), text("User-Agent", "other"),
			text("tracestate", "a=50%,b=x"), text("baggage", "k=a%20b"), text("traceparent", "bad\n"),
		},
	})

	require.Equal(t, "no json", string(sent))
	require.True(t, strings.HasPrefix(r.Host, "127.0.0.1:"), r.Host)
	for name, want := range map[string][]string{
		"Message-Type": {"%C3%A7ay%0D%0AX-Injected:%20yes"}, "Message-Key": {"%00%FF%25"}, "X-Text": {"%20100%25%20%22sure%22%20%C3%A7ay%0A"},
		"Content-Type": {"application/octet-stream"}, "Webhook-Id": {"evt_1"}, "Message-Id": {"evt_1"}, "Idempotency-Key": {"evt_1"}, "User-Agent": {"semel"},
		"Tracestate": {"a=50%,b=x"}, "Baggage": {"k=a%20b"}, "Traceparent": nil, "X-Injected": nil, "Authorization": nil, "Cookie": nil, "Svix-Id": nil,
		"Expect": nil, "Bad name": nil,
	} {
		require.Equal(t, want, r.Header[name], name)
	}
	require.NotContains(t, r.Header["Webhook-Signature"], "v1,x")
}

func TestPublisher_ContentType(t *testing.T) {
	t.Parallel()

	for payload, want := range map[string]string{`{"a":1}`: "application/json", "\x00\x01": "application/octet-stream", "": ""} {
		r, _ := sentAs(t, webhook.PublisherConfig{}, &handler.Message{ID: "evt_1", Payload: []byte(payload)})
		require.Equal(t, want, r.Header.Get("Content-Type"), "%q", payload)
	}
}

// An id of any characters arrives as one that Standard Webhooks can sign; one that no
// consumer takes is refused for good, and shown in part only.
func TestPublisher_IDs(t *testing.T) {
	t.Parallel()

	for id, want := range map[string]string{"order.42": "order%2E42", "çay 1%": "%C3%A7ay%201%25", `a",;b`: "a%22,;b"} {
		hook := setup(t, webhook.StandardWebhooks(senderSecret), webhook.Config{Clock: time.Now})
		require.NoError(t, publish(t, sender(t, listen(t, hook.ServeHTTP).URL, webhook.PublisherConfig{}), &handler.Message{ID: id, Payload: []byte(body)}))
		require.Equal(t, "standard:"+want, hook.shelf.stored()[0].ID)
	}
	e := listen(t, status(http.StatusOK))
	p := sender(t, e.URL, webhook.PublisherConfig{})
	for _, id := range []string{"", " \t", "a\x00", "\xff", strings.Repeat("x", 256)} {
		err := publish(t, p, &handler.Message{ID: id})
		require.True(t, handler.IsPermanent(err), "%q: %v", id, err)
		require.Less(t, len(err.Error()), 400)
	}
	require.Empty(t, e.seen())
}

// The key of a request is the user's to choose.
func TestPublisher_IdempotencyKey(t *testing.T) {
	t.Parallel()

	byType := func(msg *handler.Message) string { return msg.Type }
	for key, want := range map[string][]string{
		"":                       nil,
		"8e03978e-40d5":          {"8e03978e-40d5"},
		"a b":                    {`"a b"`},
		`a"\,;`:                  {`"a\"\\,;"`},
		strings.Repeat("k", 255): {strings.Repeat("k", 255)},
	} {
		r, _ := sentAs(t, webhook.PublisherConfig{IdempotencyKey: byType}, &handler.Message{ID: "evt_1", Type: key})
		require.Equal(t, want, r.Header["Idempotency-Key"], key)
	}
	p := sender(t, listen(t, status(http.StatusOK)).URL, webhook.PublisherConfig{IdempotencyKey: byType})
	for _, key := range []string{"hunter2\n", "çay-hunter2", strings.Repeat("hunter2", 40)} {
		err := publish(t, p, &handler.Message{ID: "evt_1", Type: key})
		require.True(t, handler.IsPermanent(err))
		require.ErrorContains(t, err, "its Idempotency-Key")
		require.NotContains(t, err.Error(), "hunter2")
	}
}

// A user in the URL is sent as HTTP has it.
func TestPublisher_BasicAuth(t *testing.T) {
	t.Parallel()

	e := listen(t, func(w http.ResponseWriter, r *http.Request) {
		if user, password, ok := r.BasicAuth(); !ok || user != "us er" || password != "hunter2" {
			w.WriteHeader(http.StatusUnauthorized)
		}
	})
	p := sender(t, strings.Replace(e.URL, "http://", "http://us%20er:hunter2@", 1), webhook.PublisherConfig{})
	require.NoError(t, publish(t, p, numbered(1)))
}

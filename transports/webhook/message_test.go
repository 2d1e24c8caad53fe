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

// messageOf is what becomes of a signed body.
func messageOf(t *testing.T, p provider, preset webhook.Preset, cfg webhook.Config, payload string, spoil func(http.Header)) *handler.Message {
	t.Helper()
	b := setup(t, preset, cfg)
	r := p.unsigned(payload)
	if spoil != nil {
		spoil(r.Header)
	}
	require.NoError(t, preset.Sign(r, signedAt))
	w := b.serve(r)
	require.Equal(t, http.StatusOK, w.Code, w.Body.String())
	require.Len(t, b.shelf.stored(), 1)
	return b.shelf.stored()[0]
}

func TestMessage_Stripe(t *testing.T) {
	t.Parallel()

	p := providers()[0]
	tests := []struct {
		name, body, id, kind, key string
		occurred                  time.Time
	}{
		{
			name: "Event",
			body: `{"id":"evt_1","object":"event","type":"charge.succeeded","created":1700000000,"livemode":false,"pending_webhooks":2,"data":{"object":{"id":"ch_1","metadata":{"id":"x"}},"previous_attributes":{"id":"y"}}}`,
			id:   "stripe:evt_1", kind: "charge.succeeded", key: "ch_1", occurred: signedAt.UTC(),
		},
		{
			name: "Thin",
			body: `{"id":"evt_2","object":"v2.core.event","type":"v1.billing.meter.error_report_triggered","created":"2023-11-14T22:13:20.5Z","related_object":{"id":"mtr_1","type":"billing.meter"}}`,
			id:   "stripe:evt_2", kind: "v1.billing.meter.error_report_triggered", key: "mtr_1", occurred: signedAt.Add(500 * time.Millisecond).UTC(),
		},
		{name: "NoObject", body: `{"id":"evt_3","type":"balance.available","data":{"object":{"object":"balance"}}}`, id: "stripe:evt_3", kind: "balance.available"},
		{name: "OtherKinds", body: `{"id":"evt_4","type":["a"],"created":{},"data":"x"}`, id: "stripe:evt_4"},
		{name: "NoID", body: `{"type":"a"}`, id: "", kind: "a"},
		{name: "EmptyID", body: `{"id":"","type":"a"}`, id: "", kind: "a"},
		{name: "BlankID", body: `{"id":" \t","type":"a"}`, id: " \t", kind: "a"},
		{name: "IDThatIsNoText", body: `{"id":{"id":"evt"},"type":"a"}`, id: "", kind: "a"},
		{name: "NotJSON", body: `id=evt_1`},
		{name: "Array", body: `[{"id":"evt_1"}]`},
		{name: "Null", body: `null`},
		{name: "Empty", body: ``},
		{name: "LongID", body: `{"id":"` + strings.Repeat("i", 300) + `"}`, id: "stripe:" + strings.Repeat("i", 300)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			msg := messageOf(t, p, p.preset(p.secrets[0]), webhook.Config{}, tt.body, nil)

			var key []byte
			if tt.key != "" {
				key = []byte(tt.key)
			}
			require.Equal(t, &handler.Message{
				ID: tt.id, Type: tt.kind, Key: key, OccurredAt: tt.occurred, Source: "stripe", ContentType: "application/json; charset=utf-8",
				Payload: msg.Payload, Stable: msg.Stable, Origin: handler.Origin{Transport: "webhook", Topic: "stripe", Time: signedAt.UTC()},
			}, msg)
			require.Equal(t, tt.body, string(msg.Payload))
		})
	}
}

func TestMessage_GitHub(t *testing.T) {
	t.Parallel()

	p := providers()[1]
	preset := p.preset(p.secrets[0])
	const payload = `{"action":"opened","repository":{"id":1,"full_name":"octo/hello"},"organization":{"login":"octo"}}`
	msg := messageOf(t, p, preset, webhook.Config{Endpoint: "github-main"}, payload, nil)
	require.Equal(t, "github-main:72d3162e-cc78-11e3-81ab-4c9367dc0958", msg.ID)
	require.Equal(t, "push", msg.Type)
	require.Equal(t, "octo/hello", string(msg.Key))
	require.Equal(t, handler.Origin{Transport: "webhook", Topic: "github-main"}, msg.Origin, "no time is signed")

	msg = messageOf(t, p, preset, webhook.Config{}, `{"organization":{"login":"octo"}}`, nil)
	require.Equal(t, "octo", string(msg.Key))

	msg = messageOf(t, p, preset, webhook.Config{}, payload, func(h http.Header) { h.Del("X-GitHub-Delivery") })
	require.Empty(t, msg.ID, "the engine buries it: with a name before it, it would be an id")

	const form = "application/x-www-form-urlencoded"
	encoded := "payload=" + strings.NewReplacer("{", "%7B", `"`, "%22", " ", "+").Replace(payload)
	msg = messageOf(t, p, preset, webhook.Config{}, encoded, func(h http.Header) { h.Set("Content-Type", form) })
	require.Equal(t, encoded, string(msg.Payload), "byte for byte")
	require.Equal(t, "octo/hello", string(msg.Key))
	field, err := webhook.FormPayload(msg)
	require.NoError(t, err)
	require.Equal(t, payload, string(field))

	field, err = webhook.FormPayload(&handler.Message{ContentType: "application/json", Payload: []byte("{}")})
	require.NoError(t, err)
	require.Equal(t, "{}", string(field))
	for _, broken := range []string{"", "a=b", "payload=%zz", "payload=1&payload=2"} {
		msg = messageOf(t, p, preset, webhook.Config{}, broken, func(h http.Header) { h.Set("Content-Type", form) })
		require.Equal(t, p.id, msg.ID)
		_, err = webhook.FormPayload(msg)
		require.Error(t, err, broken)
		require.True(t, handler.IsPermanent(err))
		require.NotContains(t, err.Error(), "%zz")
	}
}

func TestMessage_StandardWebhooks(t *testing.T) {
	t.Parallel()

	p := providers()[2]
	preset := p.preset(p.secrets[0])
	msg := messageOf(t, p, preset, webhook.Config{}, `{"type":"invoice.paid","timestamp":"2022-11-03T20:26:10.344522Z","data":{"id":"inv_1"}}`, nil)
	require.Equal(t, p.id, msg.ID)
	require.Equal(t, "invoice.paid", msg.Type)
	require.Equal(t, "inv_1", string(msg.Key))
	require.Equal(t, time.Date(2022, 11, 3, 20, 26, 10, 344522000, time.UTC), msg.OccurredAt)
	require.Equal(t, signedAt.UTC(), msg.Origin.Time)
}

func TestMessage_HMAC(t *testing.T) {
	t.Parallel()

	p := providers()[3]
	preset := webhook.HMAC(webhook.HMACConfig{
		Name: "square", Secrets: p.secrets[:], Header: "X-Signature",
		ID: "/event_id", Type: "/a~1b/~0type", Key: "/data/objects/1/id", Version: "/data/version", OccurredAt: "/created_at",
	})
	tests := []struct {
		name, body, id, kind, key string
		version                   int64
		occurred                  time.Time
	}{
		{
			name: "All", body: `{"event_id":"e1","a/b":{"~type":"order.paid"},"created_at":"2023-11-14T22:13:20Z","data":{"version":7,"objects":[{"id":"o0"},{"id":"o1"}]}}`,
			id: "square:e1", kind: "order.paid", key: "o1", version: 7, occurred: signedAt.UTC(),
		},
		{name: "Seconds", body: `{"event_id":"e1","created_at":1700000000}`, id: "square:e1", occurred: signedAt.UTC()},
		{name: "LongNumber", body: `{"event_id":12345678901234567890123,"data":{"version":1e3}}`, id: "square:12345678901234567890123"}, // never a float
		{name: "TextVersion", body: `{"event_id":"e1","data":{"version":"12"}}`, id: "square:e1", version: 12},
		{name: "ExactNames", body: `{"Event_ID":"no","event_id":"e1"}`, id: "square:e1"},
		{name: "NotThere", body: `{"event_id":null,"a/b":[],"data":{"objects":[{}]}}`},
		{name: "NotJSON", body: `<xml/>`},
		{name: "Torn", body: `{"event_id":"e1"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			msg := messageOf(t, p, preset, webhook.Config{}, tt.body, nil)
			require.Equal(t, tt.id, msg.ID)
			require.Equal(t, tt.kind, msg.Type)
			require.Equal(t, tt.key, string(msg.Key))
			require.Equal(t, tt.version, msg.Version)
			require.Equal(t, tt.occurred, msg.OccurredAt)
		})
	}
}

// Headers are kept by a list. What authenticates is not on it, whoever asks.
func TestMessage_Headers(t *testing.T) {
	t.Parallel()

	p := providers()[1]
	preset := p.preset(p.secrets[0])
	const trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	msg := messageOf(t, p, preset, webhook.Config{Headers: []string{"X-Tenant", "x-tenant"}}, body, func(h http.Header) {
		h.Set("Traceparent", trace)
		h.Set("X-Tenant", "t1")
		h.Set("Authorization", "Bearer secret")
		h.Set("Cookie", "session=secret")
		h.Set("X-Hub-Signature", "sha1=secret")
		h.Set("X-Forwarded-For", "10.0.0.1")
		h.Set("User-Agent", strings.Repeat("u", 2000)) // too long to keep
	})
	require.ElementsMatch(t, handler.Headers{
		{Name: "x-github-event", Value: []byte("push")},
		{Name: "x-github-delivery", Value: []byte("72d3162e-cc78-11e3-81ab-4c9367dc0958")},
		{Name: "traceparent", Value: []byte(trace)},
		{Name: "x-tenant", Value: []byte("t1")},
	}, msg.Headers)

	eachProvider(t, func(t *testing.T, p provider) {
		msg := messageOf(t, p, p.preset(p.secrets[0]), webhook.Config{}, body, nil)
		require.Equal(t, p.id, msg.ID)
		_, kept := msg.Headers.First(strings.ToLower(p.header))
		require.False(t, kept, "the signature")
	})
}

// An event of Stripe's that is sent again holds another count of endpoints that have
// not answered. It is the same message; one with another amount is not.
func TestFingerprint_Stripe(t *testing.T) {
	t.Parallel()

	preset := webhook.Stripe("whsec_example_not_a_real_secret")
	fingerprint := func(payload string) string {
		part := preset.Fingerprint(&handler.Message{Payload: []byte(payload)})
		require.NotNil(t, part, "nil would compare nothing")
		return string(part)
	}
	event := func(pending, inner string) string {
		return `{ "note" : "\\\"pending_webhooks\":7", "pending_webhooks" : ` + pending + ` , "data":{"object":{"amount":1,"pending_webhooks":` + inner + `}}, "list":["pending_webhooks", 3]}`
	}
	first := fingerprint(event("2", "1"))
	require.Equal(t, first, fingerprint(event("1", "1")))
	require.Equal(t, first, fingerprint(event("10", "1")))
	require.NotEqual(t, first, fingerprint(event("2", "2")), "only the outermost")
	require.NotEqual(t, first, fingerprint(strings.Replace(event("2", "1"), `"amount":1`, `"amount":2`, 1)))
	require.NotEqual(t, first, fingerprint(strings.Replace(event("2", "1"), `3]`, `4]`, 1)))
	require.NotEqual(t, first, fingerprint(strings.Replace(event("2", "1"), `:7`, `:8`, 1)))
	require.NotEqual(t, first, fingerprint(event(`"2"`, "1")), "a text is no number")
	for _, payload := range []string{"", "null", "[]", "x", `{"torn`, `{"torn\`, `{"pending_webhooks"`, `{"pending_webhooks":`, `{"pending_webhooks" 1}`, `{"`, `"pending_webhooks":1`} {
		require.Equal(t, payload, fingerprint(payload))
	}
}

func TestFingerprint_IsAllOfTheOthers(t *testing.T) {
	t.Parallel()

	for _, p := range providers()[1:] {
		for _, payload := range []string{"", body, "{ }"} {
			part := p.preset(p.secrets[0]).Fingerprint(&handler.Message{Payload: []byte(payload)})
			require.NotNil(t, part)
			require.Equal(t, payload, string(part))
		}
	}
}

// What two objects of a provider have in common may be the key.
func TestMessage_KeyOfOnesOwn(t *testing.T) {
	t.Parallel()

	p := providers()[0]
	body := `{"id":"evt_1","type":"charge.succeeded","data":{"object":{"id":"ch_1","payment_intent":"pi_1"}}}`
	keyed := func(msg *handler.Message) []byte { return append([]byte(msg.Type+" of "), msg.Key...) }

	require.Equal(t, "charge.succeeded of ch_1", string(messageOf(t, p, p.preset(p.secrets[0]), webhook.Config{Key: keyed}, body, nil).Key))
	require.Nil(t, messageOf(t, p, p.preset(p.secrets[0]), webhook.Config{Key: func(*handler.Message) []byte { return nil }}, body, nil).Key)
}

// Copies are compared by what the provider does not change.
func TestMessage_Stable(t *testing.T) {
	t.Parallel()

	p := providers()[0]
	first := messageOf(t, p, p.preset(p.secrets[0]), webhook.Config{}, `{"id":"evt_1","type":"x","pending_webhooks":2}`, nil)
	again := messageOf(t, p, p.preset(p.secrets[0]), webhook.Config{}, `{"id":"evt_1","type":"x","pending_webhooks":11}`, nil)

	require.Equal(t, string(first.Stable), string(again.Stable))
	require.NotEqual(t, string(first.Payload), string(again.Payload))
}

// What a provider has signed and nobody can read is of no type, so nobody can say that
// it is of no interest: it is kept for a person, and not answered as if it were.
func TestMessage_UnreadableIsNotIgnored(t *testing.T) {
	t.Parallel()

	p := providers()[0]
	msg := messageOf(t, p, p.preset(p.secrets[0]), webhook.Config{Types: []string{"charge.succeeded"}}, `{"id":"evt_1","type":`, nil)

	require.Empty(t, msg.ID)
	require.Equal(t, `{"id":"evt_1","type":`, string(msg.Payload))
}

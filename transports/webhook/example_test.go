package webhook_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/transports/webhook"
)

// printer stands for an inbox.
type printer struct{}

func (printer) Store(_ context.Context, msg *handler.Message) (handler.Outcome, error) {
	fmt.Println("store", msg.ID, msg.Type, string(msg.Key))
	return handler.Stored, nil
}

// An endpoint for one account of a provider. Two secrets are valid while one is
// rotated.
func ExampleNewHandler() {
	preset := webhook.Stripe("whsec_example_not_a_real_secret", "whsec_the_one_before_it")
	hook, err := webhook.NewHandler(printer{}, preset, webhook.Config{Endpoint: "stripe-eu"})
	if err != nil {
		fmt.Println(err)
		return
	}
	mux := http.NewServeMux()
	mux.Handle("POST /webhooks/stripe", hook)

	// In a test of your own the provider is a line:
	event := `{"id":"evt_1","type":"charge.succeeded","data":{"object":{"id":"ch_1"}}}`
	r := httptest.NewRequest("POST", "/webhooks/stripe", strings.NewReader(event))
	r.Header.Set("Content-Type", "application/json")
	if err := preset.Sign(r, time.Now()); err != nil {
		fmt.Println(err)
	}
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, r)
	fmt.Println(w.Code)

	w = httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest("GET", "/webhooks/stripe", nil))
	fmt.Println(w.Code)
	// Output:
	// store stripe-eu:evt_1 charge.succeeded ch_1
	// 200
	// 405
}

// A wrong secret is found at start.
func ExampleNewHandler_badSecret() {
	_, err := webhook.NewHandler(printer{}, webhook.Stripe("sk_live_an_api_key"), webhook.Config{})
	fmt.Println(err)
	// Output:
	// make webhook handler of preset stripe: secret 1 is no signing secret of an endpoint: it must begin with whsec_
}

// What each provider signs differs; how a test signs does not. What is signed beside
// the body must be there before.
func ExamplePreset_Sign() {
	at := time.Unix(1_700_000_000, 0)
	sign := func(preset webhook.Preset, header string) {
		r := httptest.NewRequest("POST", "/", strings.NewReader(`{"id":"evt_1"}`))
		r.Header.Set("webhook-id", "msg_1")
		if err := preset.Sign(r, at); err != nil {
			fmt.Println(err)
		}
		fmt.Printf("%s: %.40s...\n", header, r.Header.Get(header))
	}
	sign(webhook.Stripe("whsec_example_not_a_real_secret"), "Stripe-Signature")
	sign(webhook.GitHub("example-github-secret"), "X-Hub-Signature-256")
	sign(webhook.StandardWebhooks("whsec_ZXhhbXBsZS1zZWNyZXQtZXhhbXBsZS1zZWNyZXQtMzI="), "webhook-signature")
	// Output:
	// Stripe-Signature: t=1700000000,v1=548a458e87dfa581f2fc0952...
	// X-Hub-Signature-256: sha256=cf405a04ebe9d0c3d91cab42c59901ad3...
	// webhook-signature: v1,dAHU0rAc26yGjoi73WfUT0inWMFIVp5fCyR/f...
}

// A provider that has no preset: Slack's form, with the time in front of the body.
func ExampleHMAC() {
	preset := webhook.HMAC(webhook.HMACConfig{
		Name:            "slack",
		Secrets:         []string{"example-signing-secret"},
		Header:          "X-Slack-Signature",
		Prefix:          "v0=",
		Template:        "v0:{timestamp}:{body}",
		TimestampHeader: "X-Slack-Request-Timestamp",
		TimestampUnit:   time.Second,
		ID:              "/event_id",
		Type:            "/event/type",
		Key:             "/event/channel",
	})
	hook, err := webhook.NewHandler(printer{}, preset, webhook.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	r := httptest.NewRequest("POST", "/", strings.NewReader(`{"event_id":"Ev1","event":{"type":"message","channel":"C1"}}`))
	r.Header.Set("Content-Type", "application/json")
	if err := preset.Sign(r, time.Now()); err != nil {
		fmt.Println(err)
	}
	hook.ServeHTTP(httptest.NewRecorder(), r)
	// Output:
	// store slack:Ev1 message C1
}

// Accept handles a message while the provider waits. In a program it is the Process
// method of an inbox.
func ExampleConfig_accept() {
	preset := webhook.GitHub("example-github-secret")
	hook, err := webhook.NewHandler(nil, preset, webhook.Config{
		Types: []string{"push"},
		Accept: func(_ context.Context, msg *handler.Message) (handler.Outcome, error) {
			var push struct{ Ref string }
			if err := json.Unmarshal(msg.Payload, &push); err != nil {
				return 0, err
			}
			fmt.Println("pushed to", push.Ref)
			return handler.Processed, nil
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, event := range []string{"push", "star"} {
		r := httptest.NewRequest("POST", "/", strings.NewReader(`{"ref":"refs/heads/main"}`))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("X-GitHub-Event", event)
		r.Header.Set("X-GitHub-Delivery", "delivery of "+event)
		if err := preset.Sign(r, time.Now()); err != nil {
			fmt.Println(err)
		}
		w := httptest.NewRecorder()
		hook.ServeHTTP(w, r)
		fmt.Println(event, w.Code)
	}
	stats := hook.Stats()
	fmt.Println(stats.Processed, "processed,", stats.Ignored, "ignored")
	// Output:
	// pushed to refs/heads/main
	// push 200
	// star 200
	// 1 processed, 1 ignored
}

// The number that changes when Stripe sends an event again is not compared: a Handler
// gives the inbox this part of each message.
func ExamplePreset_Fingerprint() {
	preset := webhook.Stripe("whsec_example_not_a_real_secret")
	first := preset.Fingerprint(&handler.Message{Payload: []byte(`{"id":"evt_1","pending_webhooks":2}`)})
	again := preset.Fingerprint(&handler.Message{Payload: []byte(`{"id":"evt_1","pending_webhooks":1}`)})
	fmt.Println(string(first), string(again))
	// Output:
	// {"id":"evt_1","pending_webhooks":} {"id":"evt_1","pending_webhooks":}
}

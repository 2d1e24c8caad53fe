package webhook_test

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/transports/webhook"
)

// A secret that cannot be right is found at start, and named by its place: the text
// would be in every log.
func TestNewHandler_BadSecrets(t *testing.T) {
	t.Parallel()

	hmac := func(form webhook.Encoding) func(...string) webhook.Preset {
		return func(secrets ...string) webhook.Preset {
			return webhook.HMAC(webhook.HMACConfig{Secrets: secrets, KeyForm: form, Header: "X-Signature", ID: "/id"})
		}
	}
	good := standardSecret("example-secret-example-secret-32")
	tests := []struct {
		name    string
		preset  func(...string) webhook.Preset
		secrets []string
		says    string
	}{
		{"StripeNone", webhook.Stripe, nil, "no secret is given"},
		{"StripeEmpty", webhook.Stripe, []string{""}, "secret 1 is empty"},
		{"StripeSecondEmpty", webhook.Stripe, []string{"whsec_example_not_a_real_secret", ""}, "secret 2 is empty"},
		{"StripeAPIKey", webhook.Stripe, []string{"sk_live_SECRETTEXT"}, "secret 1 is no signing secret of an endpoint: it must begin with whsec_"},
		{"StripeOnlyPrefix", webhook.Stripe, []string{"whsec_"}, "secret 1 is no signing secret"},
		{"StripeNewline", webhook.Stripe, []string{"whsec_SECRETTEXT\n"}, "secret 1 begins or ends with white space"},
		{"GitHubNone", webhook.GitHub, []string{}, "no secret is given"},
		{"GitHubEmpty", webhook.GitHub, []string{"SECRETTEXT", ""}, "secret 2 is empty"},
		{"GitHubBlank", webhook.GitHub, []string{"  "}, "secret 1 begins or ends with white space"},
		{"GitHubMany", webhook.GitHub, strings.Split("SECRETTEXT"+strings.Repeat(",a", 8), ","), "9 secrets are given; at most 8"},
		{"StandardEmpty", webhook.StandardWebhooks, []string{good, good, ""}, "secret 3 is empty"},
		{"StandardNoPrefix", webhook.StandardWebhooks, []string{"SECRETTEXTSECRETTEXTSECRETTEXTSE"}, "secret 1 must begin with whsec_"},
		{"StandardShort", webhook.StandardWebhooks, []string{standardSecret("SECRETTEXT")}, "secret 1 has 10 bytes behind its prefix; it must have 24 to 64"},
		{"StandardLong", webhook.StandardWebhooks, []string{standardSecret(strings.Repeat("x", 65))}, "secret 1 has 65 bytes"},
		{"StandardNotBase64", webhook.StandardWebhooks, []string{"whsec_SECRET*TEXT"}, "secret 1 must be base64"},
		{"StandardShortPublic", webhook.StandardWebhooks, []string{good, "whpk_AAAA"}, "secret 2 is no ed25519 key"},
		{"HMACEmpty", hmac(webhook.Text), []string{""}, "secret 1 is empty"},
		{"HMACNotHex", hmac(webhook.Hex), []string{"SECRETTEXT"}, "secret 1 is no hex"},
		{"HMACNotBase64", hmac(webhook.Base64), []string{"SECRET*TEXT"}, "secret 1 is no base64"},
		{"HMACPadding", hmac(webhook.Base64), []string{"=="}, "secret 1 is no base64"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			preset := tt.preset(tt.secrets...)
			_, err := webhook.NewHandler(&shelf{}, preset, webhook.Config{})
			require.ErrorContains(t, err, tt.says)
			require.NotContains(t, err.Error(), "SECRET")
			r := httptest.NewRequest("POST", "/", strings.NewReader(body))
			err = preset.Sign(r, signedAt)
			require.ErrorContains(t, err, tt.says)
		})
	}
}

func TestNewHandler_BadConfig(t *testing.T) {
	t.Parallel()

	stripe, github := webhook.Stripe("whsec_example_not_a_real_secret"), webhook.GitHub("secret")
	tests := []struct {
		name   string
		preset webhook.Preset
		cfg    webhook.Config
		says   []string
	}{
		{"EmptyPreset", webhook.Preset{}, webhook.Config{}, []string{"preset is empty: make one with Stripe"}},
		{"Colon", stripe, webhook.Config{Endpoint: "a:b"}, []string{`Endpoint is "a:b"; it must be 1 to 64`}}, // with id c it would be endpoint a with id b:c
		{"LongEndpoint", stripe, webhook.Config{Endpoint: strings.Repeat("e", 65)}, []string{"Endpoint is"}},
		{"NegativeBody", stripe, webhook.Config{MaxBody: -1}, []string{"MaxBody is -1; it must be between 1 and"}},
		{"Times", stripe, webhook.Config{Timeout: time.Millisecond, ReadTimeout: -1, RetryAfter: time.Millisecond}, []string{
			"Timeout is 1ms; it must be between 10ms and 5m0s", "ReadTimeout is -1ns", "RetryAfter is 1ms; it must be between 1s",
		}},
		{"ReadTimeout", stripe, webhook.Config{Timeout: time.Second, ReadTimeout: time.Second}, []string{"ReadTimeout is 1s; it must be below Timeout, which is 1s"}},
		{"NegativeTolerance", stripe, webhook.Config{Tolerance: -time.Second}, []string{"Tolerance is -1s; it must be between 1s and 24h"}},
		{"LongTolerance", stripe, webhook.Config{Tolerance: 25 * time.Hour}, []string{"Tolerance is 25h0m0s"}},
		{"NoTime", github, webhook.Config{Tolerance: time.Minute}, []string{"Tolerance is 1m0s; preset github signs no time"}},
		{"NoLive", github, webhook.Config{RequireLive: true}, []string{"RequireLive is set; events of preset github do not say"}},
		{"EmptyType", github, webhook.Config{Types: []string{"push", ""}}, []string{"Types: the one at 1 is empty"}},
		{"Headers", github, webhook.Config{Headers: []string{"AUTHORIZATION", "x-hub-signature-256"}}, []string{`Headers has "AUTHORIZATION"`, `Headers has "x-hub-signature-256"`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			_, err := webhook.NewHandler(&shelf{}, tt.preset, tt.cfg)

			for _, says := range tt.says {
				require.ErrorContains(t, err, says)
			}
		})
	}
}

func TestNewHandler_NeedsAStorer(t *testing.T) {
	t.Parallel()

	preset := webhook.GitHub("secret")
	_, err := webhook.NewHandler(nil, preset, webhook.Config{})
	require.ErrorContains(t, err, "make webhook handler of endpoint github: nothing takes the messages")

	_, err = webhook.NewHandler(nil, preset, webhook.Config{Accept: func(context.Context, *handler.Message) (handler.Outcome, error) { return handler.Processed, nil }})
	require.NoError(t, err)
}

// What could be cut in two ways, or proves nothing, is refused.
func TestHMAC_BadConfig(t *testing.T) {
	t.Parallel()

	base := webhook.HMACConfig{Secrets: []string{"s"}, Header: "X-Signature", ID: "/id"}
	tests := []struct {
		name   string
		change func(*webhook.HMACConfig)
		says   string
	}{
		{"NoHeader", func(c *webhook.HMACConfig) { c.Header = "" }, "Header is empty"},
		{"Algorithm", func(c *webhook.HMACConfig) { c.Algorithm = "md5" }, `Algorithm is "md5"; it must be sha256, sha512 or sha1`},
		{"Encoding", func(c *webhook.HMACConfig) { c.Encoding = webhook.Text }, `Encoding is "text"; it must be hex, base64 or base64url`},
		{"KeyForm", func(c *webhook.HMACConfig) { c.KeyForm = "pem" }, `KeyForm is "pem"`},
		{"NoID", func(c *webhook.HMACConfig) { c.ID = "" }, "IDHeader and ID are empty"},
		{"TwoIDs", func(c *webhook.HMACConfig) { c.IDHeader = "X-Id" }, "the id is in one of them"},
		{"TwoTypes", func(c *webhook.HMACConfig) { c.TypeHeader, c.Type = "X-Type", "/type" }, "the type is in one of them"},
		{"UnsignedTime", func(c *webhook.HMACConfig) { c.TimestampHeader = "X-Time" }, "a time that is not signed proves no age"},
		{"TimeWithoutHeader", func(c *webhook.HMACConfig) { c.Template = "{timestamp}{body}" }, "{timestamp} needs its header"},
		{"TimeWithoutUnit", func(c *webhook.HMACConfig) { c.Template, c.TimestampHeader = "{timestamp}{body}", "X-Time" }, "TimestampUnit is 0s; it must be time.Second or time.Millisecond"},
		{"IDWithoutHeader", func(c *webhook.HMACConfig) { c.Template = "{id}.{body}" }, "Template has {id}; it needs IDHeader"},
		{"URLMissing", func(c *webhook.HMACConfig) { c.Template = "{url}{body}" }, "{url} and URL need each other"},
		{"URLNotSigned", func(c *webhook.HMACConfig) { c.URL = "https://a" }, "{url} and URL need each other"},
		{"NoBody", func(c *webhook.HMACConfig) { c.Template = "v0" }, "without {body} anybody could change the body"},
		{"BodyTwice", func(c *webhook.HMACConfig) { c.Template = "{body}{body}" }, "{body} is in it twice"},
		{"Unknown", func(c *webhook.HMACConfig) { c.Template = "{nonce}{body}" }, "must be id, timestamp, url or body"},
		{"NotClosed", func(c *webhook.HMACConfig) { c.Template = "{body}{" }, "must be id, timestamp, url or body"},
		{"IDBeforeBody", func(c *webhook.HMACConfig) { c.ID, c.IDHeader, c.Template = "", "X-Id", "{id}{body}" }, "text must stand behind {id}"},
		{"IDBehindBody", func(c *webhook.HMACConfig) { c.ID, c.IDHeader, c.Template = "", "X-Id", "{body}{id}" }, "text must stand before {id}"},
		{"Pointer", func(c *webhook.HMACConfig) { c.Type = "type" }, `Type is "type"; it must be a JSON pointer`},
		{"PointerEscape", func(c *webhook.HMACConfig) { c.Key = "/a~2" }, `Key is "/a~2"`},
		{"PointerEnd", func(c *webhook.HMACConfig) { c.Version = "/a~" }, `Version is "/a~"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			cfg := base
			tt.change(&cfg)
			_, err := webhook.NewHandler(&shelf{}, webhook.HMAC(cfg), webhook.Config{})
			require.ErrorContains(t, err, tt.says)
		})
	}
	_, err := webhook.NewHandler(&shelf{}, webhook.HMAC(base), webhook.Config{})
	require.NoError(t, err)
}

// An id that holds the text around it could take a part of the body into it.
func TestHMAC_IDIsCutInOnePlace(t *testing.T) {
	t.Parallel()

	preset := webhook.HMAC(webhook.HMACConfig{Secrets: []string{"s"}, Header: "X-Signature", IDHeader: "X-Id", Template: "<{body}::{id}!>"})
	for id, ok := range map[string]bool{"a": true, "a:": false, ":a": false, "a!": false, "a>b": true} {
		b := setup(t, preset, webhook.Config{})
		r := httptest.NewRequest("POST", "/", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("X-Id", id)
		err := preset.Sign(r, signedAt)
		require.Equal(t, ok, err == nil, id)
		if ok {
			require.Equal(t, 200, b.serve(r).Code, id)
		} else {
			r.Header.Set("X-Signature", "00")
			require.Equal(t, 401, b.serve(r).Code, id)
		}
	}
}

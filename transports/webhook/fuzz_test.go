package webhook_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/transports/webhook"
)

// ofBytes is what a request sends; names and values as a server would let through.
func ofBytes(payload []byte, headers map[string]string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/hook", bytes.NewReader(payload))
	r.Header.Set("Content-Type", "application/json")
	for name, value := range headers {
		r.Header[http.CanonicalHeaderKey(name)] = []string{value}
	}
	return r
}

func macOf(secret string, parts ...string) []byte {
	mac := hmac.New(sha256.New, []byte(secret))
	for _, part := range parts {
		mac.Write([]byte(part))
	}
	return mac.Sum(nil)
}

// requireVouched requires what must hold whatever is sent: a request is stored, byte for
// byte, if a right signature is among what it has, and else is refused.
func requireVouched(t *testing.T, b *testBundle, r *http.Request, payload []byte, vouched bool) {
	t.Helper()
	w := b.serve(r)
	stored := b.shelf.stored()
	if w.Code == http.StatusUnauthorized {
		require.Empty(t, stored)
		return
	}
	require.Equal(t, http.StatusOK, w.Code)
	require.True(t, vouched, "nobody has signed this")
	require.Len(t, stored, 1)
	require.True(t, bytes.Equal(payload, stored[0].Payload))
}

func FuzzStripeSignature(f *testing.F) {
	const secret = "whsec_example_not_a_real_secret"
	const good = "t=1700000000,v1=ddcaceaaad8f726b9635fa1a43e1da1dea536b634194d72dc57bf6df2bb2c559"
	for _, header := range []string{
		good, good + ",v0=00", "t=1700000000,v1=00," + good[strings.Index(good, "v1"):], "t=1700000000,t=1700000000", "v1=,t=", "t=01700000000,v1=" + good[16:],
		",", "=", "", "t=1700000000", strings.Repeat(",v1=00", 40), "t=1700000000,V1=" + good[16:], "t=99999999999999999999,v1=00", "ç=ç", "\x00\xff",
	} {
		f.Add(header, []byte(body))
	}
	f.Add(good, []byte{})
	f.Fuzz(func(t *testing.T, header string, payload []byte) {
		b := setup(t, webhook.Stripe(secret), webhook.Config{Tolerance: 24 * time.Hour})
		vouched := strings.Contains(strings.ToLower(header), hex.EncodeToString(macOf(secret, "1700000000.", string(payload)))) // for no other time is one known
		requireVouched(t, b, ofBytes(payload, map[string]string{"Stripe-Signature": header}), payload, vouched)
	})
}

func FuzzGitHubSignature(f *testing.F) {
	const secret = "example-github-secret"
	const good = "sha256=7a8d732a7537cb86f27942bc6baf1add8f0dea78e1cbefbdbb5f0ccb637dda3c"
	for _, header := range []string{good, strings.ToUpper(good), "sha1=00", "sha256=", good + " ", good + "," + good, "", "=", "sha256", "sha256=sha256=", "\xff"} {
		f.Add(header, []byte(body), "push", "1")
	}
	f.Add(good, []byte(body), "ping", "")
	f.Fuzz(func(t *testing.T, header string, payload []byte, event, delivery string) {
		cfg := webhook.Config{}
		if event == "ping" {
			cfg.Types = []string{event}
		}
		b := setup(t, webhook.GitHub(secret), cfg)
		vouched := strings.EqualFold(header, "sha256="+hex.EncodeToString(macOf(secret, string(payload))))
		r := ofBytes(payload, map[string]string{"X-Hub-Signature-256": header, "X-GitHub-Event": event, "X-GitHub-Delivery": delivery})
		requireVouched(t, b, r, payload, vouched)
	})
}

func FuzzStandardWebhooksSignature(f *testing.F) {
	const secret = "example-secret-example-secret-32"
	const good, asymmetric = "v1,FleQufhDtc3nGkYTxVpbdKVtmkLvKt/fs11jCwULMzw=", "v1a,1zNflSiyhb8Nif6Fq9RdHkIlzBbVOm2uOD4INvUZoC5ZNuMpcTQpNgunotBsVTvwesl09/FqJOHySqswKMr3AA=="
	for _, signature := range []string{good, asymmetric, asymmetric + " " + good, "v1,", "v1a,AAAA", " ", ",", "v2," + good[3:], strings.Repeat("v1,AA ", 40), strings.TrimRight(good, "="), "v1,====", "\xff", good[:10] + "\n" + good[10:]} {
		f.Add("msg_example_1", "1700000000", signature, []byte(body))
	}
	f.Add("msg.1", "1700000000", good, []byte(body))
	f.Add("msg_example_1", "1700000000.", good, []byte(body))
	f.Add("", "", "", []byte{})
	f.Fuzz(func(t *testing.T, id, at, signature string, payload []byte) {
		preset := webhook.StandardWebhooks(standardSecret(secret), "whpk_p2GJ3hwFZsw+U4Iwkaek0xR+cfR9wDhmmua8DI+Q1jA=")
		b := setup(t, preset, webhook.Config{})
		want := strings.TrimRight(base64.StdEncoding.EncodeToString(macOf(secret, id, ".", at, ".", string(payload))), "=")
		vouched := strings.Contains(signature, want) ||
			id == "msg_example_1" && at == "1700000000" && string(payload) == body && strings.Contains(signature, asymmetric[:80])
		requireVouched(t, b, ofBytes(payload, map[string]string{"webhook-id": id, "webhook-timestamp": at, "webhook-signature": signature}), payload, vouched)
	})
}

func FuzzHMACSignature(f *testing.F) {
	const good = "2c240ebd2cac776c096bde076792700ac99d1ae7e3a93cce96d16146070bd352"
	for _, header := range []string{good, "v1=" + good, "v1=00;v1=" + good, ";", "v1=", strings.Repeat("v1=00;", 40), "\xff"} {
		f.Add(header, "v1=", ";", []byte(body))
		f.Add(header, "", "", []byte(body))
	}
	f.Fuzz(func(t *testing.T, header, prefix, separator string, payload []byte) {
		preset := webhook.HMAC(webhook.HMACConfig{Secrets: []string{"example-generic-secret"}, Header: "Signature", Prefix: prefix, Separator: separator, ID: "/id"})
		b := setup(t, preset, webhook.Config{})
		vouched := strings.Contains(strings.ToLower(header), hex.EncodeToString(macOf("example-generic-secret", string(payload))))
		requireVouched(t, b, ofBytes(payload, map[string]string{"Signature": header}), payload, vouched)
	})
}

// No two requests that differ in id, time or body are signed as one, whatever template
// was taken.
func FuzzTemplate(f *testing.F) {
	for _, template := range []string{"{body}", "{id}.{timestamp}.{body}", "v0:{timestamp}:{body}", "{timestamp}{body}", "{body}.{id}", "{id}{body}", "{body}{", "}{", "{id}aa{body}aa{timestamp}", "{timestamp}1{id}1{body}", "{url}{body}"} {
		f.Add(template, "a", "b", []byte("x"), []byte("y"))
		f.Add(template, "a", "a.b", []byte("b.x"), []byte("x"))
		f.Add(template, "xa", "x", []byte("body"), []byte("abody"))
	}
	f.Fuzz(func(t *testing.T, template, id, otherID string, payload, otherPayload []byte) {
		cfg := webhook.HMACConfig{Secrets: []string{"s"}, Header: "Signature", Template: template, ID: "/id"}
		if strings.Contains(template, "{id}") {
			cfg.ID, cfg.IDHeader = "", "Id"
		}
		if strings.Contains(template, "{timestamp}") {
			cfg.TimestampHeader, cfg.TimestampUnit = "Time", time.Second
		}
		if strings.Contains(template, "{url}") {
			cfg.URL = "https://shop.example.com/hook"
		}
		preset := webhook.HMAC(cfg)
		one, other := ofBytes(payload, map[string]string{"Id": id}), ofBytes(otherPayload, map[string]string{"Id": otherID})
		if preset.Sign(one, signedAt) != nil || preset.Sign(other, signedAt.Add(time.Hour)) != nil {
			return
		}
		if one.Header.Get("Signature") == other.Header.Get("Signature") {
			require.True(t, bytes.Equal(payload, otherPayload))
			require.False(t, strings.Contains(template, "{timestamp}"))
			require.True(t, cfg.IDHeader == "" || id == otherID)
		}
		b := setup(t, preset, webhook.Config{})
		require.Equal(t, http.StatusOK, b.serve(one).Code, "what it signs, it takes")
	})
}

// Whatever a provider has signed is stored as it came, under an id that is its own or
// under none.
func FuzzMessage(f *testing.F) {
	for _, payload := range []string{
		body, "", "null", "[]", `{"id":1.5e3,"type":null,"data":{"object":[]},"created":"x"}`, `{"id":"\u0000"}`, "\ufeff{}", `{"id":"`, `{"id":" "}`, `{"ID":"a","id":"b"}`,
		`{"data":{"id":"\ud800"},"repository":{"full_name":7},"timestamp":"2023-11-14T22:13:20Z"}`, "payload=%7B%7D", "{\"id\":\"\xff\"}", strings.Repeat("[", 20000),
	} {
		f.Add([]byte(payload), "push", "1")
	}
	f.Fuzz(func(t *testing.T, payload []byte, event, delivery string) {
		for _, p := range providers() {
			preset := p.preset(p.secrets[0])
			b := setup(t, preset, webhook.Config{Endpoint: "e"})
			r := ofBytes(payload, p.headers)
			if p.name == "GitHub" && event != "ping" {
				r.Header["X-Github-Event"], r.Header["X-Github-Delivery"] = []string{event}, []string{delivery}
			}
			require.NoError(t, preset.Sign(r, signedAt))
			require.Equal(t, http.StatusOK, b.serve(r).Code)
			msg := b.shelf.stored()[0]
			require.True(t, bytes.Equal(payload, msg.Payload))
			require.True(t, strings.TrimSpace(msg.ID) == "" || strings.HasPrefix(msg.ID, "e:") && strings.TrimSpace(msg.ID[2:]) != "", msg.ID)
			require.NotNil(t, preset.Fingerprint(msg))
		}
	})
}

// A pointer finds what a full reading of the body finds.
func FuzzPointer(f *testing.F) {
	for _, pointer := range []string{"/id", "/data/id", "/a~1b", "/~0", "/0", "/data/00", "/", "//", "/-1", "id", "/a~", "/~2", "/data/-"} {
		f.Add(pointer, []byte(`{"id":"x","data":{"id":"y","00":"z"},"a/b":"1","~":"2","":{"":"3"},"l":["4"]}`))
		f.Add(pointer, []byte(`["4",["5"]]`))
	}
	f.Fuzz(func(t *testing.T, pointer string, payload []byte) {
		preset := webhook.HMAC(webhook.HMACConfig{Secrets: []string{"s"}, Header: "Signature", ID: "/id", Key: pointer})
		r := ofBytes(payload, nil)
		if preset.Sign(r, signedAt) != nil {
			require.True(t, pointer != "" && (pointer[0] != '/' || strings.Contains(pointer, "~")))
			return
		}
		b := setup(t, preset, webhook.Config{})
		require.Equal(t, http.StatusOK, b.serve(r).Code)
		require.Equal(t, walk(pointer, payload), string(b.shelf.stored()[0].Key))
	})
}

// walk looks a pointer up in a body that was read as a whole.
func walk(pointer string, payload []byte) string {
	decoder := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(payload, []byte("\ufeff"))))
	decoder.UseNumber()
	var in any
	if decoder.Decode(&in) != nil || decoder.More() || pointer == "" || !json.Valid(bytes.TrimPrefix(payload, []byte("\ufeff"))) {
		return ""
	}
	for _, token := range strings.Split(pointer[1:], "/") {
		token = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
		switch at := in.(type) {
		case map[string]any:
			in = at[token]
		case []any:
			i := 0
			for i < len(at) && token != strconv.Itoa(i) {
				i++
			}
			if i == len(at) {
				return ""
			}
			in = at[i]
		default:
			return ""
		}
	}
	switch found := in.(type) {
	case string:
		return found
	case json.Number:
		return found.String()
	}
	return ""
}

// Whatever an event holds, only the number that changes between copies is left out.
func FuzzFingerprint(f *testing.F) {
	for _, payload := range []string{`{"id":"a","pending_webhooks":1}`, `{"pending_webhooks":1,"pending_webhooks":2}`, `{"pending_webhooks":{"a":[]},"b":"\u2028<>"}`, "{}", "null", "[1]", "", "\ufeff{}", "{\"a\":\"\xff\"}"} {
		f.Add([]byte(payload))
	}
	preset := webhook.Stripe("whsec_example_not_a_real_secret")
	f.Fuzz(func(t *testing.T, payload []byte) {
		part := preset.Fingerprint(&handler.Message{Payload: payload})
		require.NotNil(t, part)
		require.LessOrEqual(t, len(part), len(payload))
		if string(part) == string(payload) {
			return
		}
		at := 0 // where a number was cut out
		for at < len(part) && part[at] == payload[at] {
			at++
		}
		number := payload[at : at+len(payload)-len(part)]
		require.Empty(t, strings.Trim(string(number), "0123456789"))
		require.Equal(t, string(payload), string(part[:at])+string(number)+string(part[at:]))
		if !json.Valid(payload) {
			return
		}
		var members map[string]any
		require.NoError(t, json.Unmarshal(payload, &members))
		require.Contains(t, members, "pending_webhooks")
		restored := string(part[:at]) + "0" + string(part[at:])
		var left map[string]any
		require.NoError(t, json.Unmarshal([]byte(restored), &left))
		delete(members, "pending_webhooks")
		delete(left, "pending_webhooks")
		require.Equal(t, members, left)
	})
}

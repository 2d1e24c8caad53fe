package webhook_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/transports/webhook"
)

// What providers have published, or their SDKs have accepted: as literals, so that a
// preset that verifies only what it has signed itself is caught.
func TestVector(t *testing.T) {
	t.Parallel()

	sum := sha256.Sum256([]byte(body))
	require.Equal(t, "3504db76051a00e37ad87844b7356697ec907e881f4966f989a020952c46e8a9", hex.EncodeToString(sum[:]))
	require.Len(t, body, 50)

	type vector struct {
		preset  webhook.Preset
		body    string
		headers map[string]string // signature and what is signed
	}
	standard := func(signature string) map[string]string {
		return map[string]string{"webhook-id": "msg_example_1", "webhook-timestamp": "1700000000", "webhook-signature": signature}
	}
	github := func(signature string) map[string]string {
		return map[string]string{"X-Hub-Signature-256": signature, "X-GitHub-Delivery": "1"}
	}
	generic := func(encoding webhook.Encoding) webhook.Preset {
		return webhook.HMAC(webhook.HMACConfig{Secrets: []string{"example-generic-secret"}, Header: "Signature", Encoding: encoding, ID: "/id"})
	}
	tests := []struct {
		name    string
		vectors []vector
	}{
		{name: "StandardWebhooks", vectors: []vector{
			{
				preset: webhook.StandardWebhooks("whsec_" + base64.StdEncoding.EncodeToString([]byte("example-secret-example-secret-32"))), body: body,
				headers: standard("v1,FleQufhDtc3nGkYTxVpbdKVtmkLvKt/fs11jCwULMzw="),
			},
			{
				preset: webhook.StandardWebhooks("whpk_p2GJ3hwFZsw+U4Iwkaek0xR+cfR9wDhmmua8DI+Q1jA="), body: body,
				headers: standard("v1a,1zNflSiyhb8Nif6Fq9RdHkIlzBbVOm2uOD4INvUZoC5ZNuMpcTQpNgunotBsVTvwesl09/FqJOHySqswKMr3AA=="),
			},
			{
				preset: webhook.StandardWebhooks("whsec_" + base64.StdEncoding.EncodeToString([]byte("example-secret-example-secret-32"))), body: body,
				headers: map[string]string{"svix-id": "msg_example_1", "svix-timestamp": "1700000000", "svix-signature": "v1,FleQufhDtc3nGkYTxVpbdKVtmkLvKt/fs11jCwULMzw="},
			},
		}},
		{name: "Stripe", vectors: []vector{{
			preset: webhook.Stripe("whsec_example_not_a_real_secret"), body: body,
			headers: map[string]string{"Stripe-Signature": "t=1700000000,v1=ddcaceaaad8f726b9635fa1a43e1da1dea536b634194d72dc57bf6df2bb2c559"},
		}}},
		{name: "GitHub", vectors: []vector{
			{
				preset: webhook.GitHub("example-github-secret"), body: body,
				headers: github("sha256=7a8d732a7537cb86f27942bc6baf1add8f0dea78e1cbefbdbb5f0ccb637dda3c"),
			},
			{
				preset: webhook.GitHub("It's a Secret to Everybody"), body: "Hello, World!",
				headers: github("sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"),
			},
		}},
		{name: "HMAC", vectors: []vector{
			{preset: generic(webhook.Hex), body: body, headers: map[string]string{"Signature": "2c240ebd2cac776c096bde076792700ac99d1ae7e3a93cce96d16146070bd352"}},
			{preset: generic(webhook.Base64), body: body, headers: map[string]string{"Signature": "LCQOvSysd2wJa94HZ5JwCsmdGufjqTzOltFhRgcL01I="}},
			{preset: generic(webhook.Base64URL), body: body, headers: map[string]string{"Signature": "LCQOvSysd2wJa94HZ5JwCsmdGufjqTzOltFhRgcL01I"}},
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			for _, v := range tt.vectors {
				b := setup(t, v.preset, webhook.Config{})
				r := httptest.NewRequest(http.MethodPost, "/hook", strings.NewReader(v.body))
				r.Header.Set("Content-Type", "application/json")
				for name, value := range v.headers {
					r.Header.Set(name, value)
				}

				w := b.serve(r)

				require.Equal(t, http.StatusOK, w.Code, w.Body.String())
				require.Len(t, b.shelf.stored(), 1)
				require.Equal(t, v.body, string(b.shelf.stored()[0].Payload))
			}
		})
	}
}

// More vectors for the HMAC preset, each computed apart from it:
// printf '...' | openssl dgst -sha512 -hmac 'example-generic-secret'.
func TestHMAC_Forms(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name    string
		cfg     webhook.HMACConfig
		headers map[string]string
	}{
		{
			name:    "SquareForm", // the address in front, base64; accepted by the provider's SDK
			cfg:     webhook.HMACConfig{Secrets: []string{"example-square-signature-key"}, Header: "x-square-hmacsha256-signature", Encoding: webhook.Base64, Template: "{url}{body}", URL: "https://shop.example.com/webhooks/square", ID: "/id"},
			headers: map[string]string{"x-square-hmacsha256-signature": "lakLlRKfFOp/iEuFj+uuoYxokGJAHbiKJrbGNHJNxyU="},
		},
		{
			name:    "ShopifyForm",
			cfg:     webhook.HMACConfig{Secrets: []string{"example-shopify-client-secret"}, Header: "X-Shopify-Hmac-Sha256", Encoding: webhook.Base64, IDHeader: "X-Shopify-Webhook-Id"},
			headers: map[string]string{"X-Shopify-Hmac-Sha256": "RVDydBQU1lTDZIJXjD/Q/tPgawdHOt4NzgTF79NLAkY=", "X-Shopify-Webhook-Id": "1"},
		},
		{
			name:    "AdyenForm", // a key in hex
			cfg:     webhook.HMACConfig{Secrets: []string{strings.Repeat("00112233445566778899AABBCCDDEEFF", 2)}, KeyForm: webhook.Hex, Header: "HmacSignature", Encoding: webhook.Base64, ID: "/id"},
			headers: map[string]string{"HmacSignature": "InhescI3WeP5B1US1mYgh7yfwM6vCJdm45ACVqA1qzQ="},
		},
		{
			name:    "MollieForm",
			cfg:     webhook.HMACConfig{Secrets: []string{"example-mollie-secret"}, Header: "X-Mollie-Signature", Prefix: "sha256=", ID: "/id"},
			headers: map[string]string{"X-Mollie-Signature": "sha256=0e3e21b0ca842ac91f493e4034b3ac8142827dee6594d5d3130e473105500b5c"},
		},
		{
			name: "StandardForm", // id and time in front, a key in base64, one of several signatures
			cfg: webhook.HMACConfig{
				Secrets: []string{"ZXhhbXBsZS1zZWNyZXQtZXhhbXBsZS1zZWNyZXQtMzI="}, KeyForm: webhook.Base64, Header: "webhook-signature", Prefix: "v1,", Separator: " ",
				Encoding: webhook.Base64, Template: "{id}.{timestamp}.{body}", IDHeader: "webhook-id", TimestampHeader: "webhook-timestamp", TimestampUnit: time.Second,
			},
			headers: map[string]string{
				"webhook-id": "msg_example_1", "webhook-timestamp": "1700000000",
				"webhook-signature": "v2,AAAA v1,AAAA v1,FleQufhDtc3nGkYTxVpbdKVtmkLvKt/fs11jCwULMzw=",
			},
		},
		{
			name:    "SHA1",
			cfg:     webhook.HMACConfig{Secrets: []string{"example-generic-secret"}, Header: "Signature", Algorithm: webhook.SHA1, ID: "/id"},
			headers: map[string]string{"Signature": "2a43e717dc9e03894d31d4d36cabb2a3d7d1754e"},
		},
		{
			name:    "SHA512Milliseconds",
			cfg:     webhook.HMACConfig{Secrets: []string{"example-generic-secret"}, Header: "Signature", Algorithm: webhook.SHA512, Template: "{timestamp}{body}", TimestampHeader: "Time", TimestampUnit: time.Millisecond, ID: "/id"},
			headers: map[string]string{"Time": "1700000000123", "Signature": "d87dd2e1dab3f3f0a76bf369a1371745f1d59312414bb1bc6eccf5384c4db951f4696d8394f5984a9dd1cd4eef5d8d590869b2b7df99e7a923aba74d6e8bd843"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			preset := webhook.HMAC(tt.cfg)
			b := setup(t, preset, webhook.Config{})
			r := httptest.NewRequest(http.MethodPost, "/hook", strings.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			for name, value := range tt.headers {
				r.Header.Set(name, value)
			}

			w := b.serve(r)

			require.Equal(t, http.StatusOK, w.Code, w.Body.String())
			require.Len(t, b.shelf.stored(), 1)

			signed := httptest.NewRequest(http.MethodPost, "/hook", strings.NewReader(body))
			signed.Header = r.Header.Clone()
			signed.Header.Del(tt.cfg.Header)
			require.NoError(t, preset.Sign(signed, signedAt))
			w = b.serve(signed)
			require.Equal(t, http.StatusOK, w.Code, "what it signs, it takes: "+w.Body.String())
		})
	}
}

// Case H2: bodies that somebody on the way or in the framework touched: CRLF, a BOM,
// unicode escapes, gzip. SDKs that parsed and wrote them again before they verified
// refused what was right (stripe-node#341; smee-client#325). Here a byte more or less is
// a wrong signature, and what was signed with it arrives with it.
func TestVerify_RawBytes(t *testing.T) {
	t.Parallel()

	eachProvider(t, func(t *testing.T, p provider) {
		preset := p.preset(p.secrets[0])
		touched := map[string]string{
			"OneByteChanged": strings.Replace(body, "1999", "9999", 1),
			"CRLF":           body + "\r\n",
			"Newline":        body + "\n",
			"BOM":            "\ufeff" + body,
			"Escapes":        strings.Replace(body, "ç", `\u00e7`, 1),
			"Composed":       strings.Replace(body, "ç", "c\u0327", 1),
			"Truncated":      body[:len(body)-1],
			"Empty":          "",
		}
		for name, changed := range touched {
			b := setup(t, preset, webhook.Config{})
			r := p.request(t, preset, body, signedAt)
			setBody(r, changed)
			w := b.serve(r)
			require.Equal(t, http.StatusUnauthorized, w.Code, name)
			require.Equal(t, "signature is wrong\n", w.Body.String(), name)
			require.Empty(t, b.shelf.stored(), name)

			w = b.serve(p.request(t, preset, changed, signedAt))
			require.Equal(t, http.StatusOK, w.Code, "%s: %s", name, w.Body)
			require.Equal(t, changed, string(b.shelf.stored()[0].Payload), name)
		}

		for _, name := range []string{"BOM", "Newline", "Escapes"} { // whitespace and BOM do not hide the id
			b := setup(t, preset, webhook.Config{})
			b.serve(p.request(t, preset, touched[name], signedAt))
			require.Equal(t, p.id, b.shelf.stored()[0].ID, name)
		}
	})
}

// Case H2: gzip. Nobody says whether the bytes before or after were signed.
func TestVerify_Gzip(t *testing.T) {
	t.Parallel()

	eachProvider(t, func(t *testing.T, p provider) {
		preset := p.preset(p.secrets[0])
		b := setup(t, preset, webhook.Config{})
		var zipped bytes.Buffer
		zip := gzip.NewWriter(&zipped)
		_, err := zip.Write([]byte(body))
		require.NoError(t, err)
		require.NoError(t, zip.Close())

		r := p.request(t, preset, body, signedAt)
		setBody(r, zipped.String())
		b.requireRefused(t, http.StatusUnauthorized, "signature is wrong", r)

		r = p.request(t, preset, zipped.String(), signedAt)
		r.Header.Set("Content-Encoding", "gzip")
		b.requireRefused(t, http.StatusUnsupportedMediaType, "content encoding is not accepted", r)
	})
}

// Case H12: a secret is rotated. For a time the provider signs with the old one, the
// new one, or both; a receiver that knew only one of them lost what came meanwhile.
func TestVerify_Rotation(t *testing.T) {
	t.Parallel()

	eachProvider(t, func(t *testing.T, p provider) {
		older, newer := p.preset(p.secrets[0]), p.preset(p.secrets[1])
		b := setup(t, p.preset(p.secrets[1], p.secrets[0]), webhook.Config{})
		require.Equal(t, http.StatusOK, b.serve(p.request(t, older, body, signedAt)).Code)
		require.Equal(t, http.StatusOK, b.serve(p.request(t, newer, body, signedAt)).Code)
		require.Len(t, b.shelf.stored(), 1, "signed anew, it is the same message")
		require.Equal(t, int64(1), b.Stats().Duplicate)

		done := setup(t, newer, webhook.Config{})
		done.requireRefused(t, http.StatusUnauthorized, "signature is wrong", p.request(t, older, body, signedAt))
		require.Equal(t, int64(1), done.Stats().WrongSignature)
	})
}

// A sender that has both keys signs with both.
func TestVerify_SignedTwice(t *testing.T) {
	t.Parallel()

	for _, p := range providers() {
		separator, known := map[string]string{"Stripe": ",", "StandardWebhooks": " ", "HMAC": ","}[p.name]
		if !known {
			continue
		}
		r := p.request(t, p.preset(p.secrets[0]), body, signedAt)
		second := p.request(t, p.preset(p.secrets[1]), body, signedAt).Header.Get(p.header)
		if p.name == "Stripe" {
			_, second, _ = strings.Cut(second, ",")
		}
		r.Header.Set(p.header, r.Header.Get(p.header)+separator+second)
		for _, secret := range p.secrets {
			b := setup(t, p.preset(secret), webhook.Config{})
			again := r.Clone(t.Context())
			setBody(again, body)
			require.Equal(t, http.StatusOK, b.serve(again).Code, p.name)
			require.Equal(t, handler.Origin{Transport: "webhook", Topic: strings.TrimSuffix(p.id, p.id[strings.Index(p.id, ":"):]), Time: signedAt.UTC()}, b.shelf.stored()[0].Origin)
		}
	}
}

package webhook_test

import (
	"encoding/hex"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/transports/webhook"
)

// Case H1: a callback was signed an hour ahead and taken, so that it could be replayed
// for an hour and five minutes (stripe-php#657); one just inside the tolerance came
// again (camunda connectors#8989). The tolerance holds on both sides, and a replay
// within it is a duplicate.
func TestVerify_Tolerance(t *testing.T) {
	t.Parallel()

	eachProvider(t, func(t *testing.T, p provider) {
		preset := p.preset(p.secrets[0])
		if p.name == "GitHub" {
			b := setup(t, preset, webhook.Config{Clock: at(signedAt.Add(1000 * time.Hour))})
			require.Equal(t, http.StatusOK, b.serve(p.request(t, preset, body, signedAt)).Code, "it signs no time")
			return
		}
		tests := []struct {
			name  string
			now   time.Time
			says  string
			stats webhook.Stats
		}{
			{name: "HourAhead", now: signedAt.Add(-time.Hour), says: "signed in the future", stats: webhook.Stats{TooNew: 1}},
			{name: "JustAhead", now: signedAt.Add(-5*time.Minute - time.Second), says: "signed in the future", stats: webhook.Stats{TooNew: 1}},
			{name: "InsideAhead", now: signedAt.Add(-5 * time.Minute)},
			{name: "InsideBehind", now: signedAt.Add(5 * time.Minute)},
			{name: "JustBehind", now: signedAt.Add(5*time.Minute + time.Second), says: "signed too long ago", stats: webhook.Stats{TooOld: 1}},
			{name: "YearBehind", now: signedAt.AddDate(1, 0, 0), says: "signed too long ago", stats: webhook.Stats{TooOld: 1}},
		}
		for _, tt := range tests {
			b := setup(t, preset, webhook.Config{Clock: at(tt.now)})
			r := p.request(t, preset, body, signedAt)
			if tt.says != "" {
				b.requireRefused(t, http.StatusUnauthorized, tt.says, r)
				require.Equal(t, tt.stats, b.Stats(), tt.name)
				continue
			}
			require.Equal(t, http.StatusOK, b.serve(r).Code, tt.name)
			again := p.request(t, preset, body, signedAt)
			require.Equal(t, http.StatusOK, b.serve(again).Code, tt.name)
			require.Len(t, b.shelf.stored(), 1)
			require.Equal(t, webhook.Stats{Stored: 1, Duplicate: 1}, b.Stats(), tt.name)
		}

		narrow := setup(t, preset, webhook.Config{Tolerance: time.Second, Clock: at(signedAt.Add(2 * time.Second))})
		narrow.requireRefused(t, http.StatusUnauthorized, "signed too long ago", p.request(t, preset, body, signedAt))
	})
}

// The age of what nobody signed is nobody's business: who has no secret does not
// learn what our clock says.
func TestVerify_AgeAfterSignature(t *testing.T) {
	t.Parallel()

	eachProvider(t, func(t *testing.T, p provider) {
		b := setup(t, p.preset(p.secrets[0]), webhook.Config{})
		b.requireRefused(t, http.StatusUnauthorized, "signature is wrong", p.request(t, p.preset(p.secrets[1]), body, signedAt.Add(-time.Hour)))
	})
}

// Case H3: signature headers that are empty, of a megabyte, not hex, of two bytes a
// letter, with many v1, or there twice. One SDK compared lengths in letters and
// crashed on multibyte input (workos-ruby#138). Whatever comes: 401, nothing stored.
func TestVerify_BadHeaders(t *testing.T) {
	t.Parallel()

	eachProvider(t, func(t *testing.T, p provider) {
		preset := p.preset(p.secrets[0])
		good := p.request(t, preset, body, signedAt).Header.Get(p.header)
		const missing, wrong, malformed, twice = "signature is missing", "signature is wrong", "signature is malformed", "a signed header came more than once"
		separator := map[string]string{"Stripe": ",", "StandardWebhooks": " ", "HMAC": ","}[p.name]
		tests := []struct {
			name  string
			lines []string
			says  []string
		}{
			{name: "Missing", lines: nil, says: []string{missing}},
			{name: "Empty", lines: []string{""}, says: []string{missing}},
			{name: "Blank", lines: []string{"   "}, says: []string{malformed}},
			{name: "Twice", lines: []string{good, good}, says: []string{twice}},
			{name: "GoodAndBad", lines: []string{good, "x"}, says: []string{twice}},
			{name: "BadAndGood", lines: []string{"", good}, says: []string{twice}},
			{name: "Megabyte", lines: []string{strings.Repeat("v1=00,", 1<<20/6)}, says: []string{malformed}},
			{name: "GoodAndMegabyte", lines: []string{good + separator + strings.Repeat("0", 1<<20)}, says: []string{malformed}},
			{name: "ManySignatures", lines: []string{good + strings.Repeat(separator+"v1=00", 100)}, says: []string{malformed, wrong}},
			{name: "Multibyte", lines: []string{good[:len(good)-5] + "ää" + good[len(good)-1:]}, says: []string{wrong, malformed}},
			{name: "NotText", lines: []string{"\xff\xfe\x00"}, says: []string{malformed}},
			{name: "NotHex", lines: []string{good[:len(good)-10] + "zzzzzzzzzz"}, says: []string{wrong}},
			{name: "Short", lines: []string{good[:len(good)-2]}, says: []string{wrong}},
			{name: "Long", lines: []string{good + "00"}, says: []string{wrong}},
			{name: "Separators", lines: []string{",,,,  ==,=,;"}, says: []string{malformed}},
			{name: "OnlyPrefix", lines: []string{"v1="}, says: []string{wrong, malformed}},
			{name: "OtherVersion", lines: []string{strings.Replace(strings.Replace(good, "v1", "v0", 1), "sha256", "sha1", 1)}, says: []string{malformed}},
			{name: "CommaJoined", lines: []string{good + ", " + good}, says: []string{malformed, wrong}},
		}
		for _, tt := range tests {
			b := setup(t, preset, webhook.Config{})
			r := p.request(t, preset, body, signedAt)
			delete(r.Header, http.CanonicalHeaderKey(p.header))
			if tt.lines != nil {
				r.Header[http.CanonicalHeaderKey(p.header)] = tt.lines
			}
			w := b.serve(r)
			if w.Code == http.StatusOK && tt.name == "CommaJoined" { // one of them is good, read whichever way
				continue
			}
			require.Equal(t, http.StatusUnauthorized, w.Code, tt.name)
			require.Contains(t, tt.says, strings.TrimSpace(w.Body.String()), tt.name)
			require.Empty(t, b.shelf.stored(), tt.name)
			require.LessOrEqual(t, b.log.Len(), 400, "%s: what a stranger wrote is not logged", tt.name)
		}
	})
}

// What is signed beside the body is held to the same rules.
func TestVerify_BadSignedHeaders(t *testing.T) {
	t.Parallel()

	standard := providers()[2]
	stripe := providers()[0]
	generic := providers()[3]
	tests := []struct {
		name     string
		provider provider
		header   string
		lines    []string
	}{
		{"StandardNoID", standard, "Webhook-Id", nil},
		{"StandardEmptyID", standard, "Webhook-Id", []string{""}},
		{"StandardTwoIDs", standard, "Webhook-Id", []string{"msg_example_1", "msg_example_1"}},
		{"StandardHugeID", standard, "Webhook-Id", []string{strings.Repeat("i", 5000)}},
		{"StandardNoTime", standard, "Webhook-Timestamp", nil},
		{"StandardTwoTimes", standard, "Webhook-Timestamp", []string{"1700000000", "1700000000"}},
		{"StandardNegativeTime", standard, "Webhook-Timestamp", []string{"-1700000000"}},
		{"StandardTimeWithZero", standard, "Webhook-Timestamp", []string{"01700000000"}},
		{"StandardTimeWithPlus", standard, "Webhook-Timestamp", []string{"+1700000000"}},
		{"StandardTimeWithPoint", standard, "Webhook-Timestamp", []string{"1700000000.0"}},
		{"StandardHugeTime", standard, "Webhook-Timestamp", []string{"99999999999999999999999999"}},
		{"StandardArabicTime", standard, "Webhook-Timestamp", []string{"١٧٠٠٠٠٠٠٠٠"}},
		{"GenericNoTime", generic, "X-Timestamp", nil},
		{"GenericMilliseconds", generic, "X-Timestamp", []string{"1700000000000"}},
		{"StripeTwoTimes", stripe, "Stripe-Signature", []string{"t=1700000000,t=1700000000,v1=ddcaceaaad8f726b9635fa1a43e1da1dea536b634194d72dc57bf6df2bb2c559"}},
		{"StripeNoTime", stripe, "Stripe-Signature", []string{"v1=ddcaceaaad8f726b9635fa1a43e1da1dea536b634194d72dc57bf6df2bb2c559"}},
		{"StripeSpaces", stripe, "Stripe-Signature", []string{"t=1700000000, v1=ddcaceaaad8f726b9635fa1a43e1da1dea536b634194d72dc57bf6df2bb2c559"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			preset := tt.provider.preset(tt.provider.secrets[0])
			b := setup(t, preset, webhook.Config{})
			r := tt.provider.request(t, preset, body, signedAt)
			delete(r.Header, tt.header)
			if tt.lines != nil {
				r.Header[tt.header] = tt.lines
			}

			require.Equal(t, http.StatusUnauthorized, b.serve(r).Code)
			require.Empty(t, b.shelf.stored())
			require.Equal(t, int64(1), b.Stats().Unsigned+b.Stats().WrongSignature)
		})
	}
}

// A time has one text. With a zero before it, it would have two, of which the same
// signature could be asked.
func TestVerify_TimeWithAZeroBefore(t *testing.T) {
	t.Parallel()

	const secret = "whsec_example_not_a_real_secret"
	early := time.Unix(999_999_999, 0) // so early that there is room for a zero
	for text, status := range map[string]int{"999999999": http.StatusOK, "0999999999": http.StatusUnauthorized} {
		b := setup(t, webhook.Stripe(secret), webhook.Config{Clock: at(early)})
		r := providers()[0].unsigned(body)
		r.Header.Set("Stripe-Signature", "t="+text+",v1="+hex.EncodeToString(macOf(secret, text, ".", body)))
		require.Equal(t, status, b.serve(r).Code, text)
	}
}

// Case H4: a callback with a bad signature was answered 200, after it was handled
// (adyen-salesforce-commerce-cloud#1230). Never 2xx, never stored, never shown.
func TestVerify_BadSignature(t *testing.T) {
	t.Parallel()

	eachProvider(t, func(t *testing.T, p provider) {
		preset := p.preset(p.secrets[0])
		b := setup(t, preset, webhook.Config{Types: []string{"something else"}}) // not ignored either
		for i := range 20 {
			forged := p.request(t, p.preset(p.secrets[1]), `{"id":"evt_forged","card":"4242424242424242"}`, signedAt)
			b.requireRefused(t, http.StatusUnauthorized, "signature is wrong", forged)
			require.Equal(t, int64(i+1), b.Stats().WrongSignature)
		}
		log := b.log.String()
		require.Equal(t, 1, strings.Count(log, "\n"), "who sends bad ones for ever does not fill the log: "+log)
		require.Contains(t, log, `msg="webhook refused"`)
		for _, secret := range append(p.secrets[:], "4242", "evt_forged") {
			require.NotContains(t, log, secret)
		}
	})
}

// Two families of headers on one request: the signature of one does not vouch for the
// id of the other.
func TestStandardWebhooks_FamiliesAreNotMixed(t *testing.T) {
	t.Parallel()

	p := providers()[2]
	preset := p.preset(p.secrets[0])
	b := setup(t, preset, webhook.Config{})
	r := p.request(t, preset, body, signedAt)
	r.Header.Set("svix-id", "forged")
	r.Header.Set("svix-signature", "v1,AAAA")
	require.Equal(t, http.StatusOK, b.serve(r).Code)
	require.Equal(t, p.id, b.shelf.stored()[0].ID)

	mixed := p.request(t, preset, body, signedAt)
	mixed.Header.Set("svix-signature", mixed.Header.Get("webhook-signature"))
	mixed.Header.Set("svix-id", "msg_forged")
	mixed.Header.Set("svix-timestamp", "1700000000")
	mixed.Header.Del("webhook-signature")
	require.Equal(t, http.StatusUnauthorized, b.serve(mixed).Code)
	require.Len(t, b.shelf.stored(), 1)
}

// An id with a point could take a part of what is signed behind it.
func TestStandardWebhooks_PointInID(t *testing.T) {
	t.Parallel()

	p := providers()[2]
	preset := p.preset(p.secrets[0])
	b := setup(t, preset, webhook.Config{})
	r := p.unsigned(body)
	r.Header.Set("webhook-id", "msg.1")
	require.NoError(t, preset.Sign(r, signedAt))
	b.requireRefused(t, http.StatusUnauthorized, "signature is malformed", r)
}

// An asymmetric key verifies what its owner signed, and is never a shared secret.
func TestStandardWebhooks_Asymmetric(t *testing.T) {
	t.Parallel()

	private := "whsk_ZXhhbXBsZS1zZWVkLWV4YW1wbGUtc2VlZC0zMi1ieXQ="
	public := "whpk_p2GJ3hwFZsw+U4Iwkaek0xR+cfR9wDhmmua8DI+Q1jA="
	p := providers()[2]
	r := p.request(t, webhook.StandardWebhooks(private), body, signedAt)
	require.Equal(t, "v1a,1zNflSiyhb8Nif6Fq9RdHkIlzBbVOm2uOD4INvUZoC5ZNuMpcTQpNgunotBsVTvwesl09/FqJOHySqswKMr3AA==", r.Header.Get("webhook-signature"))

	b := setup(t, webhook.StandardWebhooks(p.secrets[0], public), webhook.Config{})
	require.Equal(t, http.StatusOK, b.serve(r).Code)

	// Whoever knows the public key signs with it as if it were shared.
	confused := p.request(t, webhook.StandardWebhooks("whsec_"+strings.TrimPrefix(public, "whpk_")), `{"forged":true}`, signedAt)
	require.Equal(t, http.StatusUnauthorized, b.serve(confused).Code)
	require.Len(t, b.shelf.stored(), 1)

	_, err := webhook.NewHandler(b.shelf, webhook.StandardWebhooks(private), webhook.Config{})
	require.ErrorContains(t, err, "private key")
	require.Error(t, webhook.StandardWebhooks(public).Sign(p.unsigned(body), signedAt))
}

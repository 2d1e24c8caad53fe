package as2_test

import (
	"bytes"
	"io"
	"mime"
	"mime/multipart"
	"net/http/httptest"
	"net/mail"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/examples/internal/as2"
)

const interchange = "UNB+UNOA:3+SENDER+RECIPIENT+260101:1200+1'\r\nUNZ+0+1'\r\n"

var (
	hub = as2.Responder{ReportingUA: "hub.example; edihub", Domain: "hub.example"}
	at  = time.Date(2026, 11, 30, 18, 5, 9, 123456789, time.FixedZone("", 3600))
)

func header(m *as2.MDN, name string) string {
	for _, f := range m.Header {
		if f.Name == name {
			return f.Value
		}
	}
	return ""
}

func processed(t *testing.T, changes ...string) *as2.MDN {
	t.Helper()
	req, err := as2.ParseRequest(headers(changes...))
	require.NoError(t, err)
	return hub.Answer(req, as2.Answer{Disposition: as2.Processed, MIC: req.MIC([]byte(interchange)), At: at})
}

// The vectors are what openssl dgst -sha256 -binary | base64 makes of the
// content, and of nothing else.
func TestMIC(t *testing.T) {
	t.Parallel()
	for algorithm, want := range map[string]string{
		"sha-256": "Cc1srKqlZr4RPpMISOACLbM6bbkh2TZnjPr00GkbIUs=, sha-256",
		"SHA256":  "Cc1srKqlZr4RPpMISOACLbM6bbkh2TZnjPr00GkbIUs=, SHA256",
		"sha-384": "tFq5golfQ1bd2NM0vKITAMRodedLGM20kMkT9x1zf2+VJhDotgdM7dcvL9x1qnxK, sha-384",
		"sha512":  "p5mjvOutpbJYZz3V4VRm12ku/li1P8VLVBBdbX1KAUPPMdgSwov/Xataj5LTUigvr6270zZ9f1qnDBvpu+Szyg==, sha512",
		"md5":     "",
	} {
		require.Equal(t, want, as2.MIC(algorithm, []byte(interchange)), algorithm)
	}
}

// An MDN is read here by others' parsers: that of mail for the whole, that of
// MIME for its parts.
func TestAnswer_Parses(t *testing.T) {
	t.Parallel()
	mdn := processed(t, "AS2-From", `"Partner GmbH"`)

	msg, err := mail.ReadMessage(bytes.NewReader(mdn.Bytes()))
	require.NoError(t, err)
	require.Equal(t, `"our hub"`, msg.Header.Get("AS2-From"))
	require.Equal(t, `"Partner GmbH"`, msg.Header.Get("AS2-To"))
	require.Equal(t, "1.0", msg.Header.Get("MIME-Version"))
	require.Regexp(t, `^<[0-9a-f]{32}@hub\.example>$`, msg.Header.Get("Message-ID"))
	date, err := msg.Header.Date()
	require.NoError(t, err)
	require.True(t, date.Equal(at.Truncate(time.Second)), "%s", date)
	media, params, err := mime.ParseMediaType(msg.Header.Get("Content-Type"))
	require.NoError(t, err)
	require.Equal(t, "multipart/report", media)
	require.Equal(t, "disposition-notification", params["report-type"])

	parts := multipart.NewReader(msg.Body, params["boundary"])
	human, err := parts.NextPart()
	require.NoError(t, err)
	require.Equal(t, "text/plain; charset=utf-8", human.Header.Get("Content-Type"))
	text, err := io.ReadAll(human)
	require.NoError(t, err)
	require.Contains(t, string(text), "<1@partner.example> arrived and is kept")
	machine, err := parts.NextPart()
	require.NoError(t, err)
	require.Equal(t, "message/disposition-notification", machine.Header.Get("Content-Type"))
	content, err := io.ReadAll(machine)
	require.NoError(t, err)
	require.Equal(t, strings.ReplaceAll(`Reporting-UA: hub.example; edihub
Original-Recipient: rfc822; "our hub"
Final-Recipient: rfc822; "our hub"
Original-Message-ID: <1@partner.example>
Disposition: automatic-action/MDN-sent-automatically; processed
Received-Content-MIC: Cc1srKqlZr4RPpMISOACLbM6bbkh2TZnjPr00GkbIUs=, sha-256
`, "\n", "\r\n"), string(content))
	_, err = parts.NextPart()
	require.ErrorIs(t, err, io.EOF)
}

// Nothing in an MDN is drawn at random or read from a clock: a resent message
// gets the bytes that the first one got, and no other message does.
func TestAnswer_Deterministic(t *testing.T) {
	t.Parallel()
	first := processed(t).Bytes()

	require.Equal(t, first, processed(t).Bytes())
	require.Equal(t, first, processed(t, "AS2-From", `"partner"`, "Content-Type", "application/edifact; charset=x").Bytes())
	for _, other := range [][]string{{"Message-ID", "<2@partner.example>"}, {"AS2-From", "partner2"}, {"AS2-To", "hub"}} {
		mdn := processed(t, other...)
		require.NotEqual(t, header(processed(t), "Message-ID"), header(mdn, "Message-ID"))
	}
}

func TestMDN_KeptAndSent(t *testing.T) {
	t.Parallel()
	mdn := processed(t)

	kept, err := as2.ParseMDN(mdn.Bytes())
	require.NoError(t, err)
	require.Equal(t, mdn, kept)

	w := httptest.NewRecorder()
	require.NoError(t, kept.Send(w))
	require.Equal(t, 200, w.Code)
	require.Equal(t, mdn.Body, w.Body.Bytes())
	for _, f := range mdn.Header {
		require.Equal(t, f.Value, w.Header().Get(f.Name))
	}
	require.Equal(t, mdn, as2.ReceiveMDN(w.Header(), w.Body.Bytes()))

	for _, broken := range []string{"", "AS2-From: a", "nonsense\r\n\r\nbody"} {
		_, err := as2.ParseMDN([]byte(broken))
		require.ErrorContains(t, err, "read an MDN of")
	}
}

// What is said to people cannot become a part of its own.
func TestReadReceipt(t *testing.T) {
	t.Parallel()
	req, err := as2.ParseRequest(headers())
	require.NoError(t, err)
	boundary := strings.Split(header(processed(t), "Content-Type"), `"`)[1]
	text := "segment 4 (QTY): \r\n--" + boundary + "\r\nDisposition: x; processed"
	tests := []struct {
		name   string
		answer as2.Answer
		want   as2.Receipt
	}{
		{name: "Processed", answer: as2.Answer{Disposition: as2.Processed, Text: text, MIC: req.MIC([]byte(interchange))}, want: as2.Receipt{
			Text: "segment 4 (QTY): --" + boundary + " Disposition: x; processed", Disposition: as2.Processed, MIC: "Cc1srKqlZr4RPpMISOACLbM6bbkh2TZnjPr00GkbIUs=, sha-256",
		}},
		{name: "Failed", answer: as2.Answer{Disposition: as2.UnsupportedFormat}, want: as2.Receipt{
			Text: "The message <1@partner.example> is not taken.", Disposition: as2.UnsupportedFormat,
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			mdn := hub.Answer(req, tt.answer)
			tt.want.MessageID = "1@partner.example"

			receipt, err := as2.ReadReceipt(header(mdn, "Content-Type"), mdn.Body)

			require.NoError(t, err)
			require.Equal(t, &tt.want, receipt)
		})
	}
}

func TestReadReceipt_Broken(t *testing.T) {
	t.Parallel()
	const report = `multipart/report; report-type=disposition-notification; boundary="b"`
	part := func(content string) string {
		return "--b\r\nContent-Type: message/disposition-notification\r\n\r\n" + content + "\r\n--b--\r\n"
	}
	tests := []struct{ name, contentType, body, says string }{
		{name: "NoType", body: part("Disposition: a; processed"), says: "Content-Type"},
		{name: "HTML", contentType: "text/html", body: "<html>", says: `"text/html" is none of an MDN`},
		{name: "OtherReport", contentType: "multipart/report; report-type=delivery-status; boundary=b", says: "none of an MDN"},
		{name: "Torn", contentType: report, body: "--b\r\nContent-Type: text/plain\r\n\r\nhello", says: "its parts"},
		{name: "NoNotification", contentType: report, body: "--b\r\nContent-Type: text/plain\r\n\r\nhello\r\n--b--\r\n", says: "no part of it is the notification"},
		{name: "NoDisposition", contentType: report, body: part("Reporting-UA: x"), says: "it says no disposition"},
		{name: "NoFields", contentType: report, body: part("nonsense"), says: "its notification"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			_, err := as2.ReadReceipt(tt.contentType, []byte(tt.body))

			require.ErrorContains(t, err, tt.says)
		})
	}
}

func FuzzReadReceipt(f *testing.F) {
	f.Add("multipart/report; report-type=disposition-notification; boundary=b", []byte("--b\r\nContent-Type: message/disposition-notification\r\n\r\nDisposition: a; processed\r\n--b--\r\n"))
	f.Fuzz(func(t *testing.T, contentType string, body []byte) {
		if receipt, err := as2.ReadReceipt(contentType, body); err == nil {
			require.NotNil(t, receipt)
		}
	})
}

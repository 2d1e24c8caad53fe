package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/examples/internal/as2"
)

// Other content under a Message-ID is not the message, and not nothing: it is in
// front of a person, with a claim check that redeems it.
func TestHub_Mismatch(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first := b.post(request(invoic))

	w := b.post(request(una))

	requireRefusal(t, w, as2.UnexpectedError, "another content came under this Message-ID before")
	require.Equal(t, 1, b.Number(t, `SELECT count(*) FROM semel.outbox`))
	require.Equal(t, 1, b.Number(t, `SELECT count(*) FROM semel.dead_letters WHERE reason = 'mismatch' AND convert_from(payload, 'UTF8') LIKE '%' || $1 || '%'`, objectName([]byte(una))))
	require.Equal(t, 2, b.kept(t))
	require.Equal(t, first.Body.String(), b.post(request(invoic)).Body.String(), "the first one's MDN is as it was")
	require.Equal(t, http.StatusConflict, b.post(request(una, "Disposition-Notification-To", "")).Code)
}

func requireRefusal(t *testing.T, w *httptest.ResponseRecorder, want as2.Disposition, says string) {
	t.Helper()
	require.Equal(t, http.StatusOK, w.Code, "%s", w.Body)
	receipt, err := as2.ReadReceipt(w.Header().Get("Content-Type"), w.Body.Bytes())
	require.NoError(t, err, "%s", w.Body)
	require.Equal(t, want, receipt.Disposition)
	require.Contains(t, receipt.Text, says)
	require.Empty(t, receipt.MIC)
}

// Bad input is refused with a reason and leaves nothing behind; the same post gets
// the same refusal, without an MDN by the status.
func TestHub_Refuses(t *testing.T) {
	t.Parallel()
	b := setup(t)
	tests := []struct {
		name    string
		body    string
		changes []string
		want    as2.Disposition
		says    string
	}{
		{name: "Empty", body: "", want: as2.UnexpectedError, says: "it is empty"},
		{name: "EmptyInterchange", body: "UNB+UNOA:3+A+B+260105:1434+77'UNZ+0+77'", want: as2.UnexpectedError, says: "segment 2 (UNZ), byte 30: there is no message"},
		{name: "TwoInterchanges", body: invoic + una, want: as2.UnexpectedError, says: "a second interchange"},
		{name: "TwoOfAKind", body: invoic + invoic, want: as2.UnexpectedError, says: "a second interchange"},
		{name: "MessageCount", body: strings.Replace(invoic, "UNZ+1", "UNZ+2", 1), want: as2.UnexpectedError, says: "segment 22 (UNZ), element 1"},
		{name: "BreaksOff", body: invoic[:200], want: as2.UnexpectedError, says: "breaks off"},
		{name: "JSON", body: `{"invoice": 1}`, want: as2.UnexpectedError, says: "segment 1"},
		{name: "UnknownPartner", changes: []string{"AS2-From", "widget works"}, says: "must be in quotes"},
		{name: "OtherCase", changes: []string{"AS2-From", `"widget works"`}, want: as2.AuthenticationFailed, says: `nobody of that name`},
		{name: "ForAnother", changes: []string{"AS2-To", "HUB"}, want: as2.UnexpectedError, says: `AS2-To is "HUB"`},
		{name: "XML", changes: []string{"Content-Type", "application/xml"}, want: as2.UnexpectedError, says: "send application/edifact"},
		{name: "Encrypted", changes: []string{"Content-Type", "application/pkcs7-mime"}, want: as2.DecryptionFailed, says: "not read here"},
		{name: "SignatureRequired", changes: []string{"Disposition-Notification-Options", "signed-receipt-protocol=required, pkcs7-signature"}, want: as2.UnsupportedFormat, says: "MDNs are not signed here"},
		{name: "NoMessageID", changes: []string{"Message-ID", ""}, says: "read header Message-ID: it is empty or missing"},
		{name: "NoNames", changes: []string{"AS2-To", ""}, says: "read header AS2-To"},
		{name: "ToAnAddress", changes: []string{"Receipt-Delivery-Option", "http://widget.example/mdn"}, says: "requested to an address"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			body := tt.body
			if body == "" && tt.changes != nil {
				body = invoic
			}

			w := b.post(request(body, tt.changes...))

			if tt.want == "" {
				require.Equal(t, http.StatusBadRequest, w.Code)
				require.Contains(t, w.Body.String(), tt.says)
			} else {
				requireRefusal(t, w, tt.want, tt.says)
				require.Equal(t, w.Body.String(), b.post(request(body, tt.changes...)).Body.String())
				plain := b.post(request(body, append(tt.changes, "Disposition-Notification-To", "")...))
				require.Equal(t, http.StatusUnprocessableEntity, plain.Code)
				require.Contains(t, plain.Body.String(), tt.says)
			}
			b.requireNothing(t)
			require.Zero(t, b.kept(t))
		})
	}
}

func TestHub_Body(t *testing.T) {
	t.Parallel()
	b := setup(t)

	w := b.post(request(strings.Repeat("x", maxBody+1)))
	require.Equal(t, http.StatusRequestEntityTooLarge, w.Code)
	require.Contains(t, w.Body.String(), "more than 8388608 bytes")

	r := request("")
	r.Body = io.NopCloser(io.MultiReader(strings.NewReader(invoic[:50]), iotestErrReader{}))
	w = b.post(r)
	require.Equal(t, http.StatusBadRequest, w.Code)
	require.Contains(t, w.Body.String(), "did not come to its end")

	r = request("", "AS2-From", "stranger")
	r.Body = io.NopCloser(iotestErrReader{})
	requireRefusal(t, b.post(r), as2.AuthenticationFailed, "nobody of that name") // and no byte was read

	b.requireNothing(t)
	require.Zero(t, b.kept(t))
}

// iotestErrReader is the rest of a body that does not come.
type iotestErrReader struct{}

func (iotestErrReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

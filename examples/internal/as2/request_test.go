package as2_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/examples/internal/as2"
)

func TestParseRequest(t *testing.T) {
	t.Parallel()

	req, err := as2.ParseRequest(headers("Content-Type", "Application/EDIFACT; charset=us-ascii"))

	require.NoError(t, err)
	require.Equal(t, &as2.Request{
		From: "partner", To: "our hub", MessageID: "1@partner.example", Original: "<1@partner.example>",
		NotifyTo: "edi@partner.example", MICAlgorithm: "sha-256", MediaType: "application/edifact",
	}, req)
	require.True(t, req.WantsMDN())
}

// The brackets are no part of the id, yet an MDN repeats it as it came.
func TestParseRequest_MessageID(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, header, id, says string }{
		{name: "Brackets", header: "<1@p>", id: "1@p"},
		{name: "NoBrackets", header: "1@p", id: "1@p"},
		{name: "SpaceAround", header: "  <1@p> ", id: "1@p"},
		{name: "HalfABracket", header: "<1@p", id: "<1@p"},
		{name: "Longest", header: "<" + strings.Repeat("i", 998) + ">", id: strings.Repeat("i", 998)},
		{name: "Missing", header: "", says: "read header Message-ID: it is empty or missing"},
		{name: "Nothing", header: "<>", says: "it is empty or missing"},
		{name: "Blank", header: "< >", says: "it is empty or missing"},
		{name: "Bracket", header: "<", id: "<"},
		{name: "TooLong", header: "<" + strings.Repeat("i", 999) + ">", says: "it has 999 characters, at most 998"},
		{name: "NotASCII", header: "<ü@p>", says: "printable ASCII"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			req, err := as2.ParseRequest(headers("Message-ID", tt.header))

			if tt.says != "" {
				require.Nil(t, req)
				require.ErrorContains(t, err, tt.says)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.id, req.MessageID)
			require.Equal(t, strings.TrimSpace(tt.header), req.Original)
		})
	}
}

// Nobody can be answered whose headers say two things.
func TestParseRequest_Twice(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"AS2-From", "AS2-To", "Message-ID"} {
		h := headers()
		h.Add(name, "another")
		req, err := as2.ParseRequest(h)
		require.Nil(t, req)
		require.ErrorContains(t, err, "read header "+name+": it is there 2 times")
	}
}

func TestParseRequest_Content(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		changes []string
		want    as2.Disposition
		says    string
	}{
		{name: "Binary", changes: []string{"Content-Transfer-Encoding", "binary"}},
		{name: "EightBit", changes: []string{"Content-Transfer-Encoding", "8BIT"}},
		{name: "Identity", changes: []string{"Content-Encoding", "identity"}},
		{name: "Base64", changes: []string{"Content-Transfer-Encoding", "base64"}, want: as2.UnexpectedError, says: `"base64"`},
		{name: "Gzip", changes: []string{"Content-Encoding", "gzip"}, want: as2.UnexpectedError, says: `"gzip"`},
		{name: "NoType", changes: []string{"Content-Type", ""}, want: as2.UnexpectedError, says: "Content-Type cannot be read"},
		{name: "Encrypted", changes: []string{"Content-Type", "application/pkcs7-mime; smime-type=enveloped-data"}, want: as2.DecryptionFailed, says: "not read here"},
		{name: "Signed", changes: []string{"Content-Type", `multipart/signed; boundary="b"`}, want: as2.AuthenticationFailed, says: "not read here"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			req, err := as2.ParseRequest(headers(tt.changes...))

			require.Equal(t, "1@partner.example", req.MessageID, "it can be answered")
			requireRefusal(t, err, tt.want, tt.says)
		})
	}
}

func TestParseRequest_Options(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		options string
		mic     string
		want    as2.Disposition
		says    string
	}{
		{name: "None", mic: "sha-256"},
		{name: "Usual", options: "signed-receipt-protocol=optional, pkcs7-signature; signed-receipt-micalg=optional, sha1, SHA256", mic: "SHA256"},
		{name: "FirstKnown", options: "signed-receipt-micalg=required,md5,sha-512,sha-256", mic: "sha-512"},
		{name: "NoSpaces", options: "signed-receipt-micalg=OPTIONAL,sha384;", mic: "sha384"},
		{name: "OptionalUnknown", options: "signed-receipt-micalg=optional, md5; colour=optional, red", mic: "sha-256"},
		{name: "SignatureRequired", options: "signed-receipt-protocol=required, pkcs7-signature; signed-receipt-micalg=optional, sha-256", want: as2.UnsupportedFormat, says: "a signed MDN is required"},
		{name: "MICRequired", options: "signed-receipt-micalg=required, sha1, md5", want: as2.UnsupportedMIC, says: "(sha1, md5)"},
		{name: "OtherRequired", options: "colour=required, red", want: as2.UnsupportedFormat, says: `"colour"`},
		{name: "NoImportance", options: "signed-receipt-protocol", want: as2.UnsupportedFormat, says: "neither required nor optional"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			req, err := as2.ParseRequest(headers("Disposition-Notification-Options", tt.options))

			requireRefusal(t, err, tt.want, tt.says)
			if tt.mic != "" {
				require.Equal(t, tt.mic, req.MICAlgorithm)
			}
		})
	}
}

// An MDN to an address comes later, over another connection. Nobody sends it, so
// nobody may think that it will come.
func TestParseRequest_Asynchronous(t *testing.T) {
	t.Parallel()

	req, err := as2.ParseRequest(headers("Receipt-Delivery-Option", "https://partner.example/mdn"))

	require.Nil(t, req)
	require.ErrorContains(t, err, "an MDN is requested to an address")
	require.NotContains(t, err.Error(), "https:")
}

func requireRefusal(t *testing.T, err error, want as2.Disposition, says string) {
	t.Helper()
	if want == "" {
		require.NoError(t, err)
		return
	}
	var refusal *as2.Refusal
	require.ErrorAs(t, err, &refusal)
	require.Equal(t, want, refusal.Disposition)
	require.Contains(t, refusal.Text, says)
}

func FuzzParseRequest(f *testing.F) {
	f.Add("partner", "<1@p>", "application/edifact", "signed-receipt-micalg=optional, sha1")
	f.Add(`"a \"b\""`, "<>", "multipart/signed; boundary", "=;,=")
	f.Fuzz(func(t *testing.T, from, id, contentType, options string) {
		h := http.Header{"As2-From": {from}, "As2-To": {"hub"}, "Message-Id": {id}, "Content-Type": {contentType}, "Disposition-Notification-Options": {options}}
		req, err := as2.ParseRequest(h)
		if req == nil {
			require.Error(t, err)
			return
		}
		mdn := as2.Responder{ReportingUA: "test", Domain: "test"}.Answer(req, as2.Answer{Disposition: as2.Processed, MIC: req.MIC([]byte(from))})
		kept, err := as2.ParseMDN(mdn.Bytes())
		require.NoError(t, err)
		require.Equal(t, mdn, kept)
		receipt, err := as2.ReadReceipt(header(mdn, "Content-Type"), mdn.Body)
		require.NoError(t, err)
		require.Equal(t, as2.Processed, receipt.Disposition)
	})
}

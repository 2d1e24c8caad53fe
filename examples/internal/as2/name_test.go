package as2_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/examples/internal/as2"
)

// headers are those of a message that nothing is wrong with.
func headers(changes ...string) http.Header {
	h := http.Header{}
	h.Set("AS2-From", "partner")
	h.Set("AS2-To", `"our hub"`)
	h.Set("Message-ID", "<1@partner.example>")
	h.Set("Content-Type", "application/edifact")
	h.Set("Disposition-Notification-To", "edi@partner.example")
	for i := 0; i < len(changes); i += 2 {
		h.Set(changes[i], changes[i+1])
	}
	return h
}

func TestParseRequest_Names(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		header string
		want   string
		says   string
	}{
		{name: "Plain", header: "4012345000009", want: "4012345000009"},
		{name: "Quoted", header: `"Partner GmbH"`, want: "Partner GmbH"},
		{name: "QuotedWithoutNeed", header: `"partner"`, want: "partner"},
		{name: "SpaceAround", header: ` "a b" `, want: "a b"},
		{name: "Escapes", header: `"a \"b\" \\c"`, want: `a "b" \c`},
		{name: "CaseIsKept", header: "PartneR", want: "PartneR"},
		{name: "Longest", header: strings.Repeat("n", 128), want: strings.Repeat("n", 128)},
		{name: "Empty", header: "", says: "read header AS2-From: it is empty or missing"},
		{name: "EmptyQuotes", header: `""`, says: "1 to 128 characters, not 0"},
		{name: "TooLong", header: strings.Repeat("n", 129), says: "1 to 128 characters, not 129"},
		{name: "SpaceWithoutQuotes", header: "Partner GmbH", says: "must be in quotes"},
		{name: "QuoteInside", header: `a"b`, says: "must be in quotes"},
		{name: "NotClosed", header: `"partner`, says: "the closing quote is missing"},
		{name: "ClosedByAnEscape", header: `"partner\"`, says: "the closing quote is missing"},
		{name: "BehindTheQuote", header: `"a" b`, says: "something behind the closing quote, at character 4"},
		{name: "OtherEscape", header: `"a\n"`, says: "the backslash at character 3"},
		{name: "NotASCII", header: `"Müller"`, says: "printable ASCII"},
		{name: "Control", header: "a\tb", says: "printable ASCII"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			req, err := as2.ParseRequest(headers("AS2-From", tt.header))

			if tt.says != "" {
				require.Nil(t, req)
				require.ErrorContains(t, err, tt.says)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.want, req.From)
			require.Equal(t, "our hub", req.To)
			again, err := as2.ParseRequest(headers("AS2-From", as2.FormatName(req.From)))
			require.NoError(t, err)
			require.Equal(t, req, again, "a name reads as it was written")
		})
	}
}

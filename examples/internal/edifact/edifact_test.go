package edifact_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/semel-go/semel/examples/internal/edifact"
	"github.com/semel-go/semel/internal/services"
)

// order is a good interchange. Tests spoil it.
const order = `UNB+UNOC:3+5400110000009:14+5013546107732:14+261130:0915+2722166169492'
UNH+1+ORDERS:D:96A:UN'
BGM+220+C1441747+9'
FTX+PUR+++What?'s 1?+1??:second line'
LIN+1++5400111864181:EN'
QTY+21:288'
UNS+S'
UNT+7+1'
UNZ+1+2722166169492'
`

func TestParse(t *testing.T) {
	t.Parallel()

	in, err := edifact.Parse([]byte(order))

	require.NoError(t, err)
	require.Equal(t, "UNOC 3", in.Syntax+" "+in.Version)
	require.Equal(t, "5400110000009 14", in.Sender+" "+in.SenderQualifier)
	require.Equal(t, "5013546107732 14", in.Recipient+" "+in.RecipientQualifier)
	require.Equal(t, "2722166169492", in.ControlRef)
	require.Equal(t, "0915", in.Header.Component(4, 2))
	require.Len(t, in.Messages, 1)
	m := in.Messages[0]
	require.Equal(t, "1 ORDERS D 96A UN", strings.Join([]string{m.Ref, m.Type, m.Version, m.Release, m.Header.Component(2, 4)}, " "))
	require.True(t, strings.HasPrefix(string(m.Raw), "UNH+1+") && strings.HasSuffix(string(m.Raw), "UNT+7+1'"), "%s", m.Raw)
	require.Len(t, m.Segments, 5)
	text := m.Segments[1]
	require.Equal(t, []string{"What's 1+1?", "second line"}, text.Components(4))
	require.Equal(t, 4, text.Elements())
	require.Empty(t, text.Components(2))
	require.Empty(t, text.Component(4, 3))
	require.Empty(t, text.Component(9, 1))
	require.Equal(t, 4, text.Number)
	require.Equal(t, "FTX+", order[text.Offset:text.Offset+4])
	require.Empty(t, in.Warnings)
}

// What stands between the segments, and in them, is not always what one expects.
func TestParse_Forms(t *testing.T) {
	t.Parallel()
	wrapped := strings.ReplaceAll(order, "\n", "")
	for i := 7; i < len(wrapped); i += 8 { // in values, tags and behind release characters
		wrapped = wrapped[:i] + "\r\n" + wrapped[i:]
	}
	other := strings.NewReplacer("?'", "'", "?+", "+", "??", "?", "+", "*", ":", "=", "'", "~").Replace(order)

	tests := []struct {
		name, data string
	}{
		{name: "NoLines", data: strings.ReplaceAll(order, "\n", "")},
		{name: "Windows", data: strings.ReplaceAll(order, "\n", "\r\n")},
		{name: "Wrapped", data: wrapped},
		{name: "Spaces", data: "\r\n " + strings.ReplaceAll(order, "\n", " \n\t") + " \n"},
		{name: "UNA", data: "UNA:+.? '\n" + order},
		{name: "Version4", data: "UNA:+.?*'" + strings.ReplaceAll(order, "UNOC:3", "UNOC:4")},
		{name: "Separators", data: `UNA=*,\ ~` + other},
		{name: "NoRelease", data: "UNA=*,  ~" + other},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			in, err := edifact.Parse([]byte(tt.data))

			require.NoError(t, err, "%s", tt.data)
			require.Equal(t, []string{"What's 1+1?", "second line"}, in.Messages[0].Segments[1].Components(4))
			require.Equal(t, "QTY", in.Messages[0].Segments[3].Tag)
			require.Equal(t, "288", in.Messages[0].Segments[3].Component(1, 2))
		})
	}
}

// Each error says where.
func TestParse_Refuses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		old, new string
		segment  int
		tag      string
		element  int
		says     string
	}{
		{name: "Nothing", old: order, says: "it is empty"},
		{name: "LineBreaks", old: order, new: "\n\r\n", says: "it is empty"},
		{name: "NoUNB", old: "UNB", new: "UNX", segment: 1, tag: "UNX", says: "begins with UNB"},
		{name: "SomethingElse", old: order, new: `{"order": 1}`, segment: 1, says: "has no end"},
		{name: "NoTag", old: "BGM+", new: "+", segment: 3, says: `not with ""`},
		{name: "Syntax", old: "UNOC:3", new: "UNOZ:3", segment: 1, tag: "UNB", element: 1, says: `"UNOZ"`},
		{name: "SyntaxVersion", old: "UNOC:3", new: "UNOC:9", segment: 1, tag: "UNB", element: 1, says: `version is "9"`},
		{name: "NoSender", old: "5400110000009:14", segment: 1, tag: "UNB", element: 2, says: "sender is missing"},
		{name: "NoRecipient", old: "5013546107732:14", new: " ", segment: 1, tag: "UNB", element: 3, says: "recipient is missing"},
		{name: "NoControlRef", old: "+2722166169492'\nUNH", new: "'\nUNH", segment: 1, tag: "UNB", element: 5, says: "control reference is missing"},
		{name: "LongControlRef", old: "2722166169492", new: strings.Repeat("7", 36), segment: 1, tag: "UNB", element: 5, says: "has 36 bytes"},
		{name: "NoMessage", old: order[strings.Index(order, "UNH"):strings.Index(order, "UNZ+1")] + "UNZ+1", new: "UNZ+0", segment: 2, tag: "UNZ", says: "no message"},
		{name: "SegmentCount", old: "UNT+7", new: "UNT+21", segment: 8, tag: "UNT", element: 1, says: "it says 21 segments, there are 7"},
		{name: "NoCount", old: "UNT+7", new: "UNT+7A", segment: 8, tag: "UNT", element: 1, says: `"7A"`},
		{name: "NegativeCount", old: "UNT+7", new: "UNT+-7", segment: 8, tag: "UNT", element: 1, says: `"-7"`},
		{name: "MessageRef", old: "UNT+7+1", new: "UNT+7+2", segment: 8, tag: "UNT", element: 2, says: `"2", that of its beginning is "1"`},
		{name: "MessageCount", old: "UNZ+1", new: "UNZ+2", segment: 9, tag: "UNZ", element: 1, says: "it says 2 messages, there are 1"},
		{name: "InterchangeRef", old: "UNZ+1+2722166169492", new: "UNZ+1+1", segment: 9, tag: "UNZ", element: 2, says: "that of its beginning is"},
		{name: "NoUNZ", old: "UNZ+1+2722166169492'\n", segment: 8, says: "there is no UNZ"},
		{name: "BreaksOff", old: "1+2722166169492'\n", segment: 9, says: "has no end"},
		{name: "NoUNT", old: "UNT+7+1'", segment: 8, tag: "UNZ", says: `message "1" has not ended`},
		{name: "NoUNH", old: "UNH+1+ORDERS:D:96A:UN'", segment: 2, tag: "BGM", says: "outside of any message"},
		{name: "NoType", old: "ORDERS:", new: ":", segment: 2, tag: "UNH", element: 2, says: "message type is missing"},
		{name: "TwoInterchanges", old: order, new: order + order, says: "a second interchange"},
		{name: "TwoWithUNA", old: order, new: order + "UNA:+.? '" + order, says: "a second interchange"},
		{name: "Trailer", old: order, new: order + "--", says: "behind the end"},
		{name: "SameMessageRef", old: "UNZ+1", new: "UNH+1+ORDERS:D:96A:UN'UNT+2+1'UNZ+2", segment: 9, tag: "UNH", element: 1, says: "another message"},
		{name: "Control", old: "288", new: "2\x008", segment: 6, tag: "QTY", element: 1, says: "byte 0x00"},
		{name: "NotLatin1", old: "288", new: "2\x858", segment: 6, tag: "QTY", element: 1, says: "byte 0x85"},
		{name: "NotASCII", old: "UNOC:3", new: "UNOA:3+\xfcller", segment: 1, tag: "UNB", element: 2, says: "byte 0xfc"},
		{name: "NotUTF8", old: "UNOC:3", new: "UNOW:3+\xfcller", segment: 1, tag: "UNB", element: 2, says: "byte 0xfc"},
		{name: "ShortUNA", old: order, new: "UNA:+.", tag: "UNA", says: "six characters"},
		{name: "LetterInUNA", old: order, new: "UNA:E.? '" + order, tag: "UNA", says: "'E' a separator"},
		{name: "TwoMeanings", old: order, new: "UNA::.? '" + order, tag: "UNA", says: "two meanings"},
		{name: "GroupNotEnded", old: "UNH", new: "UNG+ORDERS+1+2+261130:0915+G1'UNH", segment: 10, tag: "UNZ", says: "last group has not"},
		{name: "GroupNotBegun", old: "UNH", new: "UNE+1+G1'UNH", segment: 2, tag: "UNE", says: "no group has begun"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			data := strings.ReplaceAll(order, tt.old, tt.new)
			if tt.name == "NoType" || tt.name == "NoUNB" {
				data = strings.Replace(order, tt.old, tt.new, 1)
			}
			require.NotEqual(t, order, data)

			_, err := edifact.Parse([]byte(data))

			var at *edifact.Error
			require.ErrorAs(t, err, &at)
			require.Contains(t, err.Error(), tt.says)
			require.Equal(t, []any{tt.segment, tt.tag, tt.element}, []any{at.Segment, at.Tag, at.Element}, "%s", err)
			if at.Element > 1 {
				require.Contains(t, "+:", data[at.Offset-1:at.Offset], "it begins at byte %d", at.Offset)
			}
		})
	}
}

// What syntax version 4 has and others have not: elsewhere it is data.
func TestParse_Repeated(t *testing.T) {
	t.Parallel()
	repeated := strings.Replace(order, "288", "2*8", 1)

	in, err := edifact.Parse([]byte(repeated))
	require.NoError(t, err)
	require.Equal(t, "2*8", in.Messages[0].Segments[3].Component(1, 2))

	_, err = edifact.Parse([]byte(strings.Replace(repeated, "UNOC:3", "UNOC:4", 1)))
	require.EqualError(t, err, "segment 6, byte 186: repeated elements are not read")
}

func TestParse_Groups(t *testing.T) {
	t.Parallel()
	const grouped = `UNB+UNOA:2+A+B+261130:0915+1'UNG+ORDERS+A+B+261130:0915+G1+UN+D:96A'UNH+1+ORDERS:D:96A:UN'UNT+2+1'UNH+2+ORDERS:D:96A:UN'UNT+2+2'UNE+2+G1'` +
		`UNG+ORDRSP+A+B+261130:0915+G2+UN+D:96A'UNH+3+ORDRSP:D:96A:UN'UNT+2+3'UNE+1+G2'UNZ+2+1'`
	in, err := edifact.Parse([]byte(grouped))
	require.NoError(t, err)
	require.Len(t, in.Messages, 3)

	for wrong, says := range map[string]string{
		strings.Replace(grouped, "UNE+2+G1", "UNE+1+G1", 1):                      "segment 7 (UNE), element 1, byte 132: it says 1 messages, there are 2",
		strings.Replace(grouped, "UNE+2+G1", "UNE+2+G2", 1):                      `segment 7 (UNE), element 2, byte 134: its reference is "G2"`,
		strings.Replace(grouped, "UNZ+2", "UNZ+3", 1):                            "it says 3 groups, there are 2",
		strings.Replace(grouped, "UNZ", "UNH+4+ORDERS:D:96A:UN'UNT+2+4'UNZ", 1):  "a message outside the groups",
		strings.Replace(grouped, "UNE+2+G1'", "", 1):                             "a group begins where none can",
		strings.Replace(grouped, "UNG+ORDERS", "UNH+0+X:D:1:UN'UNT+2+0'UNG+", 1): "a group begins where none can",
	} {
		_, err := edifact.Parser{Lenient: true}.Parse([]byte(wrong))
		require.ErrorContains(t, err, says)
	}
}

// Lenient is about the count of UNT, and about characters. Nothing else passes.
func TestParser_Lenient(t *testing.T) {
	t.Parallel()
	lenient := edifact.Parser{Lenient: true}

	in, err := lenient.Parse([]byte(strings.NewReplacer("UNT+7", "UNT+21", "UNOC", "UNOA", "second", "M\xfcller").Replace(order)))
	require.NoError(t, err)
	require.Len(t, in.Warnings, 2)
	require.EqualError(t, in.Warnings[0], "segment 4 (FTX), element 4, byte 141: byte 0xfc is no character of the interchange's syntax")
	require.EqualError(t, in.Warnings[1], "segment 8 (UNT), element 1, byte 201: it says 21 segments, there are 7")
	require.Equal(t, "Müller line", in.Messages[0].Segments[1].Component(4, 2))

	_, err = lenient.Parse([]byte(strings.Replace(order, "UNT+7+1", "UNT+7+2", 1)))
	require.Error(t, err)
	_, err = lenient.Parse([]byte(strings.Replace(order, "UNZ+1", "UNZ+2", 1)))
	require.Error(t, err)
}

// Who sent it is known of what cannot be read any further.
func TestParseHeader(t *testing.T) {
	t.Parallel()

	in, err := edifact.ParseHeader([]byte(order[:90]))
	require.NoError(t, err)
	require.Equal(t, "5400110000009 2722166169492", in.Sender+" "+in.ControlRef)

	_, err = edifact.ParseHeader([]byte(order[:60]))
	require.ErrorContains(t, err, "segment 1, byte 0: the segment has no end")
	_, err = edifact.ParseHeader(nil)
	require.ErrorContains(t, err, "it is empty")
}

func TestMessage_Text(t *testing.T) {
	t.Parallel()

	in, err := edifact.Parse([]byte(strings.Replace(order, "second", "M\xfcller", 1)))

	require.NoError(t, err)
	require.Contains(t, in.Messages[0].Text(), ":Müller line'")

	// The character shows within the message that the interchange is not what it says.
	in, err = edifact.Parser{Lenient: true}.Parse([]byte(strings.NewReplacer("UNOC", "UNOA", "second", "M\xfcller").Replace(order)))
	require.NoError(t, err)
	require.Contains(t, in.Messages[0].Text(), ":Müller line'")
}

func TestParser_MaxBytes(t *testing.T) {
	t.Parallel()

	_, err := edifact.Parser{MaxBytes: len(order)}.Parse([]byte(order))
	require.NoError(t, err)
	_, err = edifact.Parser{MaxBytes: len(order) - 1}.Parse([]byte(order))
	require.ErrorContains(t, err, "larger than is read")
}

func TestParse_Charsets(t *testing.T) {
	t.Parallel()
	for syntax, text := range map[string]string{"UNOA": "Muller", "UNOB": "muller", "UNOC": "M\xfcller", "UNOW": "Müller", "IATA": "MULLER"} {
		want := text
		if syntax == "UNOC" {
			want = "Müller"
		}
		in, err := edifact.Parse([]byte(strings.NewReplacer("UNOC", syntax, "second", text).Replace(order)))
		require.NoError(t, err, syntax)
		require.Equal(t, want+" line", in.Messages[0].Segments[1].Component(4, 2), syntax)
	}
}

func TestSegment_Decimal(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"288": "288", "12.80": "12.80", "12,80": "12.80", "-3": "-3", "0": "0", "007": "007", // numbers
		"": "", "1020A": "", "1.2.3": "", "1.": "", ".5": "", "-": "", "+1": "", "1e3": "", " 1": "", "1-": "", "٣": "", strings.Repeat("9", 36): "",
	} {
		in, err := edifact.Parse([]byte(strings.NewReplacer("UNOC", "UNOW", "288", edifact.Release(text)).Replace(order)))
		require.NoError(t, err)
		got, err := in.Messages[0].Segments[3].Decimal(1, 2)
		if want == "" {
			require.ErrorContains(t, err, "segment 6 (QTY), element 1, byte ", "%q", text)
			require.ErrorContains(t, err, "is no number")
			continue
		}
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
}

// Interchanges of others, as they are.
func TestParse_Shared(t *testing.T) {
	t.Parallel()
	const folder = "../../../../shared/data/edifact"
	if _, err := os.Stat(folder); err != nil {
		services.Missing(t, "../shared/data/edifact is absent: put the EDIFACT interchanges there")
	}
	tests := []struct {
		file     string
		refused  string // strictly
		warnings int    // of a lenient reader
		kind     string
		segments int
		seg      int // one of them,
		element  int // and what is in it
		want     []string
	}{
		{
			file: "orders-with-group.edi", kind: "ORDERS:D:96B", segments: 16, seg: 11, element: 1, want: []string{"21", "288"}, warnings: 1,
			refused: "segment 20 (UNT), element 1, byte 549: it says 21 segments, there are 18",
		},
		{
			file: "invoic_d97b.edi", kind: "INVOIC:D:97B", segments: 22, seg: 4, element: 4, want: []string{"BÜTTNER WIDGET COMPANY"}, warnings: 1,
			refused: "segment 7 (NAD), element 4, byte 229: byte 0xc3",
		},
		{
			file: "wrapped_invoic_d97b.edi", kind: "INVOIC:D:97B", segments: 22, seg: 4, element: 4, want: []string{"BÜTTNER WIDGET COMPANY"}, warnings: 1,
			refused: "segment 7 (NAD), element 4, byte 227: byte 0xc3",
		},
		{file: "invoic_d97b_una.edi", kind: "INVOIC:D:97B", segments: 22, seg: 8, element: 1, want: []string{"47", "1020", "EA"}},
		{
			file: "invoic_d93a_una.edi", kind: "INVOIC:D:93A", segments: 26, seg: 4, element: 3, want: []string{"Fahrradhandel Pedal"}, warnings: 1,
			refused: "segment 7 (NAD), element 6, byte 216: byte 0xc3",
		},
		{file: "pnrgov.edi", kind: "PNRGOV:11:1", segments: 83, seg: 1, element: 1, want: []string{"1A", "MUC"}},
	}
	for _, tt := range tests {
		t.Run(tt.file, func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(filepath.Join(folder, tt.file))
			require.NoError(t, err)

			_, err = edifact.Parse(data)
			if tt.refused != "" {
				require.ErrorContains(t, err, tt.refused)
			} else {
				require.NoError(t, err)
			}
			in, err := edifact.Parser{Lenient: true}.Parse(data)
			require.NoError(t, err)
			require.Len(t, in.Warnings, tt.warnings, "%v", in.Warnings)
			require.Len(t, in.Messages, 1)
			m := in.Messages[0]
			require.Equal(t, tt.kind, m.Type+":"+m.Version+":"+m.Release)
			require.Len(t, m.Segments, tt.segments)
			require.Equal(t, tt.want, m.Segments[tt.seg].Components(tt.element))
		})
	}
}

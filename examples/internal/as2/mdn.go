package as2

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// Responder makes MDNs in the name of a system.
type Responder struct {
	// ReportingUA names the system and its software: "edi.example.com; edihub".
	ReportingUA string

	// Domain is that of the MDNs' own Message-IDs.
	Domain string
}

// Answer is what an MDN says.
type Answer struct {
	Disposition Disposition

	// Text says it to people. Defaults to a sentence about the disposition.
	Text string

	// MIC is what [Request.MIC] returned. Empty: none is told.
	MIC string

	// At is when the message was taken, and the date of the MDN. Zero: none.
	At time.Time
}

// MDN is a message disposition notification, ready to be sent. Its headers are
// those of the HTTP answer.
type MDN struct {
	Header []Field
	Body   []byte
}

// Field is a header field.
type Field struct{ Name, Value string }

// Answer makes the MDN of a request. The same values make the same bytes: what
// other software draws at random, the boundary and the Message-ID, is a hash of
// who sent what to whom.
func (r Responder) Answer(req *Request, a Answer) *MDN {
	name := hashParts(req.From, req.To, req.MessageID, string(a.Disposition))
	boundary := "mdn-" + name
	m := &MDN{Header: []Field{
		{"AS2-From", FormatName(req.To)},
		{"AS2-To", FormatName(req.From)},
		{"AS2-Version", "1.0"},
		{"Content-Type", `multipart/report; report-type=disposition-notification; boundary="` + boundary + `"`},
		{"Message-ID", "<" + name + "@" + r.Domain + ">"},
		{"MIME-Version", "1.0"},
	}}
	if !a.At.IsZero() {
		m.Header = append(m.Header, Field{"Date", a.At.UTC().Format(http.TimeFormat)})
	}
	var b bytes.Buffer
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\r\n", args...) }
	line("--%s", boundary)
	line("Content-Type: text/plain; charset=utf-8")
	line("Content-Transfer-Encoding: 8bit")
	line("")
	line("%s", a.text(req))
	line("--%s", boundary)
	line("Content-Type: message/disposition-notification")
	line("Content-Transfer-Encoding: 7bit")
	line("")
	line("Reporting-UA: %s", r.ReportingUA)
	line("Original-Recipient: rfc822; %s", FormatName(req.To))
	line("Final-Recipient: rfc822; %s", FormatName(req.To))
	line("Original-Message-ID: %s", req.Original)
	line("Disposition: automatic-action/MDN-sent-automatically; %s", a.Disposition)
	if a.MIC != "" {
		line("Received-Content-MIC: %s", a.MIC)
	}
	line("")
	line("--%s--", boundary)
	m.Body = b.Bytes()
	return m
}

// text is the part for people: one line, so that nothing in it can look like the
// next part.
func (a Answer) text(req *Request) string {
	text := a.Text
	switch {
	case text != "":
	case a.Disposition == Processed:
		text = fmt.Sprintf("The message %s arrived and is kept. That it was understood is not said by this.", req.Original)
	default:
		text = fmt.Sprintf("The message %s is not taken.", req.Original)
	}
	return strings.Join(strings.Fields(strings.ToValidUTF8(text, "?")), " ")
}

func hashParts(parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		_, _ = h.Write(binary.BigEndian.AppendUint32(nil, uint32(len(part)))) //nolint:gosec // headers are short
		_, _ = io.WriteString(h, part)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// Bytes is the MDN as a file: its headers, an empty line, its body. Keep that,
// and the next one who asks gets it byte for byte.
func (m *MDN) Bytes() []byte {
	var b bytes.Buffer
	for _, f := range m.Header {
		fmt.Fprintf(&b, "%s: %s\r\n", f.Name, f.Value)
	}
	b.WriteString("\r\n")
	b.Write(m.Body)
	return b.Bytes()
}

// ParseMDN reads what [MDN.Bytes] wrote.
func ParseMDN(b []byte) (*MDN, error) {
	head, body, ok := bytes.Cut(b, []byte("\r\n\r\n"))
	if !ok {
		return nil, fmt.Errorf("read an MDN of %d bytes: its headers do not end", len(b))
	}
	m := &MDN{Body: body}
	for line := range strings.SplitSeq(string(head), "\r\n") {
		name, value, ok := strings.Cut(line, ": ")
		if !ok {
			return nil, fmt.Errorf("read an MDN of %d bytes: header %d is none", len(b), len(m.Header)+1)
		}
		m.Header = append(m.Header, Field{name, value})
	}
	return m, nil
}

// ReceiveMDN is the MDN of an HTTP answer, as it was before [MDN.Send].
func ReceiveMDN(h http.Header, body []byte) *MDN {
	m := &MDN{Body: body}
	for _, name := range [...]string{"AS2-From", "AS2-To", "AS2-Version", "Content-Type", "Message-ID", "MIME-Version", "Date"} {
		if value := h.Get(name); value != "" {
			m.Header = append(m.Header, Field{name, value})
		}
	}
	return m
}

// Send answers an HTTP request with the MDN.
func (m *MDN) Send(w http.ResponseWriter) error {
	for _, f := range m.Header {
		w.Header().Set(f.Name, f.Value)
	}
	w.WriteHeader(http.StatusOK)
	_, err := w.Write(m.Body)
	return err
}

package webhook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/semel-go/semel/handler"
)

// notSent are headers of a message that a request has for its own purposes, or that
// would give somebody's credentials to the endpoint.
var notSent = [...]string{
	"host", "content-length", "transfer-encoding", "connection", "keep-alive", "proxy-connection", "proxy-authenticate",
	"te", "trailer", "upgrade", "expect", "accept-encoding", "user-agent",
	"idempotency-key", "x-idempotency-key", "webhook-id", "webhook-timestamp", "webhook-signature", "svix-id", "svix-timestamp", "svix-signature",
}

// asTheyAre are headers whose own specifications say how they look in HTTP.
var asTheyAre = [...]string{handler.HeaderTraceparent, handler.HeaderTracestate, "baggage"}

// once are headers that say one thing about a message.
var once = [...]string{
	handler.HeaderID, handler.HeaderType, handler.HeaderKey, handler.HeaderVersion, handler.HeaderCorrelationID,
	handler.HeaderCausationID, handler.HeaderSource, handler.HeaderOccurredAt, handler.HeaderTraceparent,
}

// request is what is sent, but for the signature. Its body can be read again: what was
// certainly not written may be resent.
func (p *Publisher) request(msg *handler.Message) (*http.Request, error) {
	if err := checkID(msg.ID); err != nil {
		return nil, err
	}
	h := headersOf(msg)
	id := percentEncoded(msg.ID, '.') // a dot would move the boundary of what is signed
	h.Set(standardID, id)
	h.Set("User-Agent", "semel")
	key := id
	if p.cfg.IdempotencyKey != nil {
		key = p.cfg.IdempotencyKey(msg)
		if err := checkKey(key); err != nil {
			return nil, err
		}
	}
	if key != "" {
		h.Set("Idempotency-Key", item(key))
	}
	r := &http.Request{Method: http.MethodPost, URL: p.to.url, Host: p.to.url.Host, Header: h, Body: http.NoBody}
	if p.to.user != nil {
		password, _ := p.to.user.Password()
		r.SetBasicAuth(p.to.user.Username(), password)
	}
	if len(msg.Payload) > 0 {
		r.ContentLength = int64(len(msg.Payload))
		r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(msg.Payload)), nil }
		r.Body, _ = r.GetBody()
	}
	return r, nil
}

// headersOf are the headers of a message as HTTP can carry them.
func headersOf(msg *handler.Message) http.Header {
	h := make(http.Header)
	for _, header := range msg.WriteHeaders() {
		name, value := strings.ToLower(header.Name), string(header.Value)
		switch {
		case !isToken(name), slices.Contains(notSent[:], name), slices.Contains(neverKept[:], name):
			continue
		case name == handler.HeaderContentType:
			if isPlain(value) && value != "" {
				h.Set(name, value)
			}
			continue
		case !slices.Contains(asTheyAre[:], name):
			value = percentEncoded(value)
		case !isPlain(value):
			continue
		}
		if slices.Contains(once[:], name) {
			h.Set(name, value) // what fills a field comes last
		} else {
			h.Add(name, value)
		}
	}
	if h.Get(handler.HeaderContentType) == "" && len(msg.Payload) > 0 {
		h.Set(handler.HeaderContentType, typeOf(msg.Payload))
	}
	return h
}

// typeOf is the content type of a payload that was given none.
func typeOf(payload []byte) string {
	if json.Valid(payload) {
		return "application/json"
	}
	return "application/octet-stream"
}

// percentEncoded is text as CloudEvents has it in HTTP headers: what is no printable
// ASCII, the space, the quote and the percent sign are encoded, byte by byte.
func percentEncoded(text string, more ...byte) string {
	encode := func(c byte) bool {
		return c <= ' ' || c > '~' || c == '"' || c == '%' || slices.Contains(more, c)
	}
	n := 0
	for i := range len(text) {
		if encode(text[i]) {
			n++
		}
	}
	if n == 0 {
		return text
	}
	const digits = "0123456789ABCDEF"
	out := make([]byte, 0, len(text)+2*n)
	for i := range len(text) {
		if c := text[i]; encode(c) {
			out = append(out, '%', digits[c>>4], digits[c&15])
		} else {
			out = append(out, c)
		}
	}
	return string(out)
}

// checkID refuses what no consumer takes for an id.
func checkID(id string) error {
	switch {
	case strings.TrimSpace(id) == "":
		return errors.New("its id is empty")
	case len(id) > 255:
		return fmt.Errorf("its id has %d bytes, at most 255 are allowed", len(id))
	case !utf8.ValidString(id), strings.Contains(id, "\x00"):
		return errors.New("its id is no text")
	}
	return nil
}

// checkKey keeps quiet about the key itself: it may be made of a payload.
func checkKey(key string) error {
	if len(key) > 255 {
		return fmt.Errorf("its Idempotency-Key has %d bytes, at most 255 are allowed", len(key))
	}
	for i := range len(key) {
		if key[i] < ' ' || key[i] > '~' {
			return errors.New("its Idempotency-Key must be printable ASCII")
		}
	}
	return nil
}

// item is a key as most servers read it, bare; quoted where bare it would be something
// else.
func item(key string) string {
	if !strings.ContainsAny(key, " \",;") {
		return key
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key) + `"`
}

// isToken reports whether name can be the name of a header.
func isToken(name string) bool {
	for i := range len(name) {
		switch c := name[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0:
		default:
			return false
		}
	}
	return name != ""
}

// isPlain reports whether value can be one of a header as it is.
func isPlain(value string) bool {
	for i := range len(value) {
		if c := value[i]; c < ' ' || c > '~' {
			return false
		}
	}
	return strings.TrimSpace(value) == value
}

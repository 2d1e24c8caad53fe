package webhook

import (
	"bytes"
	"errors"
	"net/http"
	"os"
	"strings"
	"time"
)

// read returns the body as it came, or how the request ends instead.
func (h *Handler) read(w http.ResponseWriter, r *http.Request) ([]byte, ending) {
	// First of all: net/http reads on in the body of a request that was refused, and
	// would wait for a slow one as long as the server allows. A writer that knows no
	// deadlines is not the server's. The server lifts it behind the last byte.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(h.cfg.ReadTimeout))
	if end := h.admit(r); end != unknown {
		return nil, end
	}
	var body bytes.Buffer
	body.Grow(int(min(max(r.ContentLength, 0), grow)) + bytes.MinRead) // a length is only a claim
	_, err := body.ReadFrom(http.MaxBytesReader(w, r.Body, h.cfg.MaxBody))
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
		return nil, tooLarge
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, slow
	case err != nil:
		return nil, torn
	}
	return body.Bytes(), unknown
}

// grow is the largest body that is believed to come before it does.
const grow = 64 << 10

// admit looks at what is known of a request before its body is.
func (h *Handler) admit(r *http.Request) ending {
	if r.Method != http.MethodPost {
		return wrongMethod
	}
	for _, encoding := range r.Header["Content-Encoding"] {
		if encoding != "" && !strings.EqualFold(encoding, "identity") {
			return encoded
		}
	}
	kind := r.Header.Get("Content-Type")
	accepted := false
	for _, t := range h.traits.types {
		accepted = accepted || isType(kind, t)
	}
	switch {
	case !accepted:
		return wrongType
	case r.ContentLength > h.cfg.MaxBody:
		return tooLarge
	}
	return unknown
}

// isType reports whether a content type, without its parameters, is want.
func isType(contentType, want string) bool {
	kind, _, _ := strings.Cut(contentType, ";")
	return strings.EqualFold(strings.TrimSpace(kind), want)
}

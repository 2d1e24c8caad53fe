package webhook

import (
	"net/http"
	"strings"
	"time"

	"github.com/semel-go/semel/handler"
)

const (
	// maxHeaderValue bounds each header that a message keeps. Nobody signs them.
	maxHeaderValue = 1 << 10

	// maxContentType is as long as other transports can carry.
	maxContentType = 255
)

// message is what the engine is given.
func (h *Handler) message(header http.Header, body []byte, e event, signed time.Time) *handler.Message {
	msg := &handler.Message{
		ID:         h.id(e.id),
		Type:       e.kind,
		Version:    e.version,
		Source:     h.cfg.Endpoint,
		OccurredAt: e.occurred.UTC(),
		Payload:    body,
		Origin:     handler.Origin{Transport: "webhook", Topic: h.cfg.Endpoint, Time: signed.UTC()},
	}
	if part := h.scheme.stable(body); len(part) != len(body) {
		msg.Stable = part
	}
	if e.key != "" {
		msg.Key = []byte(e.key)
	}
	msg.ContentType = header.Get("Content-Type")
	if len(msg.ContentType) > maxContentType {
		msg.ContentType, _, _ = strings.Cut(msg.ContentType[:maxContentType], ";")
	}
	for _, name := range h.kept {
		if lines := header[name.theirs]; len(lines) > 0 && len(lines[0]) <= maxHeaderValue {
			msg.Headers = append(msg.Headers, handler.Header{Name: name.ours, Value: []byte(lines[0])})
		}
	}
	if h.cfg.Key != nil {
		msg.Key = h.cfg.Key(msg)
	}
	return msg
}

// id puts the endpoint's name before the provider's id. What is no id stays none: with
// a name before it, it would be one, and all messages without an id copies of one.
func (h *Handler) id(provider string) string {
	if strings.TrimSpace(provider) == "" {
		return provider
	}
	return h.cfg.Endpoint + ":" + provider
}

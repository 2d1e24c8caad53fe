package handler

import (
	"strconv"
	"time"
)

// Names of the headers that Semel writes and reads.
const (
	HeaderID            = "message-id"
	HeaderType          = "message-type"
	HeaderKey           = "message-key"
	HeaderVersion       = "message-version"
	HeaderCorrelationID = "correlation-id"
	HeaderCausationID   = "causation-id"
	HeaderSource        = "source"
	HeaderContentType   = "content-type"
	HeaderOccurredAt    = "occurred-at"
	HeaderTraceparent   = "traceparent"
	HeaderTracestate    = "tracestate"
)

// headerDebeziumID is where Debezium's outbox event router, and Wolverine, put
// the message id.
const headerDebeziumID = "id"

// ReadHeaders fills the fields of m that are still empty from its headers. A
// source calls it once, after it has set what its transport carries outside
// the headers (a record key, AMQP properties).
//
// The id is looked for in this order: message-id; what the source has set
// already; a CloudEvents id in binary mode (source, one space, id); Debezium's
// id. A header that cannot be read leaves its field empty: headers are data
// from outside and never fail a message.
func (m *Message) ReadHeaders() {
	h := m.Headers
	if len(h) == 0 {
		return
	}
	event, isEvent := readCloudEvent(h)

	if id := h.text(HeaderID); id != "" {
		m.ID = id
	}
	if m.ID == "" && isEvent {
		m.ID = event.source + " " + event.id
	}
	if m.ID == "" {
		m.ID = h.text(headerDebeziumID)
	}
	fill(&m.Type, h.text(HeaderType), event.kind)
	fill(&m.CorrelationID, h.text(HeaderCorrelationID))
	fill(&m.CausationID, h.text(HeaderCausationID))
	fill(&m.Source, h.text(HeaderSource), event.source)
	fill(&m.ContentType, h.text(HeaderContentType))
	if len(m.Key) == 0 {
		if key, ok := h.First(HeaderKey); ok && len(key) > 0 {
			m.Key = key
		}
	}
	if m.Version == 0 {
		if v, err := strconv.ParseInt(h.text(HeaderVersion), 10, 64); err == nil {
			m.Version = v
		}
	}
	if m.OccurredAt.IsZero() {
		m.OccurredAt = firstTime(h.text(HeaderOccurredAt), event.time)
	}
}

// WriteHeaders returns the headers a publisher sends for m: m's own, with
// those that carry its fields put in or replaced, so that a field that is set
// stands there once.
func (m *Message) WriteHeaders() Headers {
	fields := [...]struct{ name, value string }{
		{HeaderID, m.ID},
		{HeaderType, m.Type},
		{HeaderKey, string(m.Key)},
		{HeaderVersion, versionText(m.Version)},
		{HeaderCorrelationID, m.CorrelationID},
		{HeaderCausationID, m.CausationID},
		{HeaderSource, m.Source},
		{HeaderContentType, m.ContentType},
		{HeaderOccurredAt, timeText(m.OccurredAt)},
	}
	out := make(Headers, 0, len(m.Headers)+len(fields))
	for _, h := range m.Headers {
		replaced := false
		for _, f := range fields {
			replaced = replaced || (f.name == h.Name && f.value != "")
		}
		if !replaced {
			out = append(out, h)
		}
	}
	for _, f := range fields {
		if f.value != "" {
			out = append(out, Header{Name: f.name, Value: []byte(f.value)})
		}
	}
	return out
}

// cloudEvent is the identity of a CloudEvents message in binary mode.
type cloudEvent struct{ id, source, kind, time string }

// readCloudEvent reads the attributes of a CloudEvents message in binary mode:
// "ce_" on Kafka, "cloudEvents_" or "cloudEvents:" on AMQP. It is one only when
// all four required attributes are there. Its id is unique per source, so the
// two together are the identity.
func readCloudEvent(h Headers) (cloudEvent, bool) {
	for _, prefix := range [...]string{"ce_", "cloudEvents_", "cloudEvents:"} {
		if h.text(prefix+"specversion") == "" {
			continue
		}
		e := cloudEvent{
			id:     h.text(prefix + "id"),
			source: h.text(prefix + "source"),
			kind:   h.text(prefix + "type"),
			time:   h.text(prefix + "time"),
		}
		if e.id != "" && e.source != "" && e.kind != "" {
			return e, true
		}
	}
	return cloudEvent{}, false
}

// fill sets an empty field to the first value that is not empty.
func fill(field *string, values ...string) {
	for _, v := range values {
		if *field == "" {
			*field = v
		}
	}
}

func firstTime(texts ...string) time.Time {
	for _, text := range texts {
		if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
			return t
		}
	}
	return time.Time{}
}

func versionText(v int64) string {
	if v == 0 {
		return ""
	}
	return strconv.FormatInt(v, 10)
}

func timeText(t time.Time) string {
	t = t.UTC()
	if t.IsZero() || t.Year() < 0 || t.Year() > 9999 { // RFC 3339 has no other years
		return ""
	}
	return t.Format(time.RFC3339Nano)
}

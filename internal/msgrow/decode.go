package msgrow

import (
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-go/semel/handler"
)

// Row takes the columns of a message as they are stored. It may be used again
// for the next row.
type Row struct {
	message                                          handler.Message
	rawID                                            []byte
	messageText, messageType, correlation, causation pgtype.Text
	source, contentType, headerTags, altered         pgtype.Text
	transport, topic, position, exchange, routingKey pgtype.Text
	occurred, at                                     pgtype.Timestamptz
	partition                                        pgtype.Int4
	version, offset                                  pgtype.Int8
	headerNames                                      []string
	headerValues                                     [][]byte
}

// Targets is where the columns are scanned to.
func (r *Row) Targets() []any {
	*r = Row{}
	m := &r.message
	return []any{
		&r.messageText, &r.rawID, &r.messageType, &m.Key, &r.version,
		&r.correlation, &r.causation, &r.source, &r.contentType, &r.occurred,
		&m.Payload, (*Names)(&r.headerNames), &r.headerValues, &r.headerTags,
		&r.transport, &r.topic, &r.partition, &r.offset, &r.position,
		&r.exchange, &r.routingKey, &r.at, &m.Origin.Redelivered, &r.altered,
	}
}

// Message puts the message together that was scanned, as it came but for its
// payload, which is as it is stored: see [Row.Payload].
func (r *Row) Message() *handler.Message {
	undo := r.restorer()
	m := r.message
	m.ID = r.messageText.String
	if r.rawID != nil {
		m.ID = string(r.rawID)
	}
	m.Type = undo.text("message_type", r.messageType)
	m.Version = r.version.Int64
	m.CorrelationID = undo.text("correlation_id", r.correlation)
	m.CausationID = undo.text("causation_id", r.causation)
	m.Source = undo.text("source", r.source)
	m.ContentType = undo.text("content_type", r.contentType)
	m.OccurredAt = UTC(r.occurred)
	_, names, values, tags := Unmark(r.headerNames, r.headerValues, r.headerTags.String)
	m.Headers = undo.headers(names, values, tags)
	m.Origin.Transport = undo.text("origin_transport", r.transport)
	m.Origin.Topic = undo.text("origin_topic", r.topic)
	m.Origin.Partition, m.Origin.Offset = r.partition.Int32, r.offset.Int64
	m.Origin.Position = undo.text("origin_position", r.position)
	m.Origin.Exchange = undo.text("origin_exchange", r.exchange)
	m.Origin.RoutingKey = undo.text("origin_routing_key", r.routingKey)
	m.Origin.Time = UTC(r.at)
	return &m
}

// Payload is the payload that was scanned, to be decoded.
func (r *Row) Payload() Payload {
	p, _, _, _ := Unmark(r.headerNames, r.headerValues, r.headerTags.String)
	p.Bytes = r.message.Payload
	return p
}

// Altered is what had to be changed so that the row could be stored.
func (r *Row) Altered() string { return r.altered.String }

// restorer is the list of alterations of a stored row.
type restorer []string

func (r *Row) restorer() restorer { return strings.Split(r.altered.String, ", ") }

func (r restorer) text(column string, stored pgtype.Text) string {
	if slices.Contains(r, column+escaped) {
		return unescape(stored.String)
	}
	return stored.String
}

// headers puts the arrays together again. A row written by hand may have
// arrays of different lengths, or a name that is NULL; what is missing counts as
// not given.
func (r restorer) headers(names []string, headerValues [][]byte, tags string) handler.Headers {
	if names == nil {
		return nil
	}
	headers := make(handler.Headers, len(names))
	undo := slices.Contains(r, "header_names"+escaped)
	for i, name := range names {
		if undo {
			name = unescape(name)
		}
		headers[i].Name = name
		if i < len(headerValues) {
			headers[i].Value = headerValues[i]
		}
		if i < len(tags) && tags[i] != noTag {
			headers[i].Tag = tags[i]
		}
	}
	return headers
}

// UTC is a time that was scanned; NULL is the zero time.
func UTC(t pgtype.Timestamptz) time.Time {
	if !t.Valid {
		return time.Time{}
	}
	return t.Time.UTC()
}

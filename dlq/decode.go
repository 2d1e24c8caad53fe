package dlq

import (
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-go/semel/handler"
)

// decode reads a row of queries/load.sql or queries/list.sql and undoes what
// [values] had to escape.
func decode(row pgx.CollectableRow) (Letter, error) {
	var (
		l                                                        Letter
		m                                                        handler.Message
		messageID                                                pgtype.UUID
		rawID                                                    []byte
		messageText, messageType, correlation, causation         pgtype.Text
		source, contentType, headerTags, altered                 pgtype.Text
		transport, topic, position, exchange, routingKey         pgtype.Text
		firstFailed, lastFailed, created, resolved, occurred, at pgtype.Timestamptz
		partition                                                pgtype.Int4
		version, offset                                          pgtype.Int8
		headerNames                                              []string
		headerValues                                             [][]byte
	)
	err := row.Scan(
		&l.ID, &l.Consumer, &l.State, &l.Owner, &l.Count, &created, &resolved,
		&l.ConsumerID, &messageID, &l.Fingerprint, &l.Reason, &l.Attempts, &firstFailed, &lastFailed, &l.Errors,
		&messageText, &rawID, &messageType, &m.Key, &version, &correlation, &causation, &source, &contentType, &occurred,
		&m.Payload, &headerNames, &headerValues, &headerTags,
		&transport, &topic, &partition, &offset, &position, &exchange, &routingKey, &at, &m.Origin.Redelivered, &altered,
	)
	if err != nil {
		return Letter{}, err
	}
	undo := restorer(strings.Split(altered.String, ", "))

	m.ID = messageText.String
	if rawID != nil {
		m.ID = string(rawID)
	}
	m.Type = undo.text("message_type", messageType)
	m.Version = version.Int64
	m.CorrelationID = undo.text("correlation_id", correlation)
	m.CausationID = undo.text("causation_id", causation)
	m.Source = undo.text("source", source)
	m.ContentType = undo.text("content_type", contentType)
	m.OccurredAt = utc(occurred)
	m.Headers = undo.headers(headerNames, headerValues, headerTags.String)
	m.Origin.Transport = undo.text("origin_transport", transport)
	m.Origin.Topic = undo.text("origin_topic", topic)
	m.Origin.Partition, m.Origin.Offset = partition.Int32, offset.Int64
	m.Origin.Position = undo.text("origin_position", position)
	m.Origin.Exchange = undo.text("origin_exchange", exchange)
	m.Origin.RoutingKey = undo.text("origin_routing_key", routingKey)
	m.Origin.Time = utc(at)

	l.MessageID, l.Message, l.Altered = messageID.Bytes, &m, altered.String
	l.FirstFailedAt, l.LastFailedAt = utc(firstFailed), utc(lastFailed)
	l.CreatedAt, l.ResolvedAt = utc(created), utc(resolved)
	return l, nil
}

// restorer is the list of alterations of a stored letter.
type restorer []string

func (r restorer) text(column string, stored pgtype.Text) string {
	if slices.Contains(r, column+escaped) {
		return unescape(stored.String)
	}
	return stored.String
}

// headers puts the arrays together again. A row written by hand may have
// arrays of different lengths; what is missing counts as not given.
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

func utc(t pgtype.Timestamptz) time.Time {
	if !t.Valid {
		return time.Time{}
	}
	return t.Time.UTC()
}

package msgrow

import (
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-go/semel/handler"
)

// Alterations are the changes that storing a row needs, one a column:
// "message_type escaped". [Row] undoes them where it can. The zero value is
// ready to use.
type Alterations []string

const (
	escaped = " escaped" // can be undone, see [unescape]
	dropped = " dropped"
	cut     = " cut"
)

// Columns are the names of what Values returns.
func Columns() []string {
	return []string{
		"message_text", "raw_id", "message_type", "key", "message_version",
		"correlation_id", "causation_id", "source", "content_type", "occurred_at",
		"payload", "header_names", "header_values", "header_tags",
		"origin_transport", "origin_topic", "origin_partition", "origin_offset", "origin_position",
		"origin_exchange", "origin_routing_key", "origin_time", "origin_redelivered", "altered",
	}
}

// Values returns the columns of m with this payload, the last one, altered, with
// all that was noted so far.
func (a *Alterations) Values(m *handler.Message, payload Payload) []any {
	o := &m.Origin
	text, raw := idValues(m.ID)
	names, values, tags := payload.Mark(a.headers(m.Headers))
	hasPlace := o.Position != "" || o.Partition != 0 || o.Offset != 0
	columns := []any{
		text, raw, a.text("message_type", m.Type), m.Key,
		pgtype.Int8{Int64: m.Version, Valid: m.Version != 0},
		a.text("correlation_id", m.CorrelationID), a.text("causation_id", m.CausationID), a.text("source", m.Source),
		a.text("content_type", m.ContentType), a.Time("occurred_at", m.OccurredAt),

		payload.Bytes, names, values, nullText(tags),

		a.text("origin_transport", o.Transport), a.text("origin_topic", o.Topic),
		pgtype.Int4{Int32: o.Partition, Valid: hasPlace},
		pgtype.Int8{Int64: o.Offset, Valid: hasPlace},
		a.text("origin_position", o.Position), a.text("origin_exchange", o.Exchange), a.text("origin_routing_key", o.RoutingKey),
		a.Time("origin_time", o.Time), o.Redelivered,
	}
	return append(columns, a.Note())
}

// Note is what stands in the column altered.
func (a *Alterations) Note() pgtype.Text { return nullText(strings.Join(*a, ", ")) }

// Time stores the zero time, which means "not given", as NULL. A broker's time
// may be any number a producer made up; what no calendar holds is dropped.
func (a *Alterations) Time(column string, t time.Time) pgtype.Timestamptz {
	if t.IsZero() {
		return pgtype.Timestamptz{}
	}
	if year := t.UTC().Year(); year < 0 || year > 9999 {
		*a = append(*a, column+dropped)
		return pgtype.Timestamptz{}
	}
	return pgtype.Timestamptz{Time: t, Valid: true}
}

// Texts escapes all texts of a column or none, so that one note is enough.
func (a *Alterations) Texts(column string, list []string) []string {
	if !slices.ContainsFunc(list, func(s string) bool { return !storable(s) }) {
		return list
	}
	*a = append(*a, column+escaped)
	list = slices.Clone(list)
	for i := range list {
		list[i] = escape(list[i])
	}
	return list
}

// Cut notes that a column holds less than there was.
func (a *Alterations) Cut(column string) { *a = append(*a, column+cut) }

// text stores "" as NULL: both mean "not given".
func (a *Alterations) text(column, s string) pgtype.Text {
	if !storable(s) {
		*a = append(*a, column+escaped)
		s = escape(s)
	}
	return nullText(s)
}

// headers stores headers as arrays: no headers as NULL, tags only if one has one.
func (a *Alterations) headers(headers handler.Headers) (names []string, headerValues [][]byte, tags string) {
	if headers == nil {
		return nil, nil, ""
	}
	names, headerValues = make([]string, len(headers)), make([][]byte, len(headers))
	letters := make([]byte, len(headers))
	odd, tagged := false, false
	for i, h := range headers {
		names[i], headerValues[i], letters[i] = h.Name, h.Value, noTag
		if h.Tag == 0 {
			continue
		}
		if !UsableTag(h.Tag) {
			odd = true
			continue
		}
		letters[i], tagged = h.Tag, true
	}
	if odd {
		*a = append(*a, "header_tags"+dropped)
	}
	if tagged {
		tags = string(letters)
	}
	return a.Texts("header_names", names), headerValues, tags
}

// idValues returns the id as text, or as bytes where it is no text.
func idValues(id string) (text pgtype.Text, raw []byte) {
	if storable(id) {
		return pgtype.Text{String: id, Valid: true}, nil
	}
	return pgtype.Text{}, []byte(id)
}

// nullText stores an empty text as NULL.
func nullText(s string) pgtype.Text { return pgtype.Text{String: s, Valid: s != ""} }

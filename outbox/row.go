package outbox

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strings"
	"time"

	"github.com/semel-go/semel/handler"
	"github.com/semel-go/semel/internal/msgrow"
)

// row is a checked event as the table takes it.
type row struct {
	Event
	stored msgrow.Payload
}

// args are the parameters of queries/insert.sql.
func (r *row) args() []any {
	names, values, tags := r.arrays()
	return []any{
		r.ID, r.AggregateType, r.AggregateID, r.Type, null(r.Version), r.stored.Bytes, null(r.ContentType), when(r.OccurredAt),
		null(r.CorrelationID), null(r.CausationID), null(r.Source), names, values, tags,
	}
}

// columns are the parameters of queries/insert_many.sql.
func columns(rows []row) []any {
	n := len(rows)
	var (
		ids, kinds, aggregates, types = make([]string, n), make([]string, n), make([]string, n), make([]string, n)
		versions                      = make([]*int64, n)
		payloads                      = make([][]byte, n)
		times                         = make([]*time.Time, n)
		contents, correlations        = make([]*string, n), make([]*string, n)
		causes, sources, tags         = make([]*string, n), make([]*string, n), make([]*string, n)
		from, to                      = make([]int32, n), make([]int32, n)
		names                         = []string{}
		values                        = [][]byte{}
	)
	for i := range rows {
		r := &rows[i]
		ids[i], kinds[i], aggregates[i], types[i] = r.ID, r.AggregateType, r.AggregateID, r.Type
		versions[i], payloads[i], times[i] = null(r.Version), r.stored.Bytes, when(r.OccurredAt)
		contents[i], correlations[i], causes[i], sources[i] = null(r.ContentType), null(r.CorrelationID), null(r.CausationID), null(r.Source)
		from[i] = int32(len(names) + 1) //nolint:gosec // an event has far fewer headers
		rowNames, rowValues, rowTags := r.arrays()
		names, values, tags[i] = append(names, rowNames...), append(values, rowValues...), rowTags
		to[i] = int32(len(names)) //nolint:gosec // as above
	}
	return []any{
		ids, kinds, aggregates, types, versions, payloads, contents, times,
		correlations, causes, sources, tags, from, to, names, values,
	}
}

// noTag stands for a header without an AMQP type.
const noTag = '-'

// arrays are headers as they are stored: none as NULL, tags only if one has one.
func (r *row) arrays() (names []string, values [][]byte, tags *string) {
	if len(r.Headers) == 0 && !r.stored.Encoded {
		return nil, nil, nil
	}
	n := len(r.Headers)
	names, values = make([]string, n, n+1), make([][]byte, n, n+1) // one for what says how the payload is encoded
	letters, tagged := make([]byte, n), false
	for i, h := range r.Headers {
		names[i], values[i], letters[i] = h.Name, h.Value, noTag
		if msgrow.UsableTag(h.Tag) {
			letters[i], tagged = h.Tag, true
		}
	}
	text := ""
	if tagged {
		text = string(letters)
	}
	names, values, text = r.stored.Mark(names, values, text)
	return names, values, null(text)
}

// headersOf undoes [arrays]. A row written by hand may have arrays of different
// lengths; what is missing counts as not given.
func headersOf(names []string, values [][]byte, tags string) handler.Headers {
	if len(names) == 0 {
		return nil
	}
	headers := make(handler.Headers, len(names))
	for i, name := range names {
		headers[i].Name = name
		if i < len(values) {
			headers[i].Value = values[i]
		}
		if i < len(tags) && tags[i] != noTag {
			headers[i].Tag = tags[i]
		}
	}
	return headers
}

// null stores the zero value, which means "not given", as NULL.
func null[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

func when(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// lockNumber is the advisory lock of an aggregate: the first 8 bytes of a
// SHA-256 over parts with their lengths before them.
func lockNumber(parts ...string) int64 {
	return int64(binary.BigEndian.Uint64(hashOf(append([]string{"semel.outbox"}, parts...)...))) //nolint:gosec // all 64 bits
}

func hashOf(parts ...string) []byte {
	h := sha256.New()
	for _, part := range parts {
		_ = binary.Write(h, binary.BigEndian, uint32(len(part))) //nolint:gosec // names are short; a hash takes everything
		h.Write([]byte(part))
	}
	return h.Sum(nil)
}

// sqlArgs are args for any driver: arrays in their text form.
func (r *row) sqlArgs() []any {
	args := r.args()
	names, values, _ := r.arrays()
	if names != nil {
		args[len(args)-3], args[len(args)-2] = textArray(names), byteaArray(values)
	}
	return args
}

var arrayEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

func textArray(elements []string) string {
	quoted := make([]string, len(elements))
	for i, e := range elements {
		quoted[i] = `"` + arrayEscapes.Replace(e) + `"`
	}
	return "{" + strings.Join(quoted, ",") + "}"
}

func byteaArray(elements [][]byte) string {
	quoted := make([]string, len(elements))
	for i, e := range elements {
		quoted[i] = "NULL"
		if e != nil {
			quoted[i] = `"\\x` + hex.EncodeToString(e) + `"`
		}
	}
	return "{" + strings.Join(quoted, ",") + "}"
}

package rabbitmq

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	amqp "github.com/rabbitmq/amqp091-go"
)

// jsonText writes a table or an array as plain JSON, for people and for those
// who read x-death: text that is not UTF-8 and bytes become base64, timestamps
// RFC 3339 text, and an integer loses its width.
func jsonText(value any) []byte {
	text, err := json.Marshal(plain(value))
	if err != nil { // nothing that plain returns can fail
		return fmt.Append(nil, value)
	}
	return text
}

// plain returns value made of what JSON has.
func plain(value any) any {
	switch v := value.(type) {
	case amqp.Table:
		object := make(map[string]any, len(v))
		for name, field := range v {
			object[name] = plain(field)
		}
		return object
	case []any:
		list := make([]any, len(v))
		for i, element := range v {
			list[i] = plain(element)
		}
		return list
	case nil, bool, int8, uint8, int16, uint16, int32, uint32, int64:
		return v
	case float32:
		return plain(float64(v))
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return strconv.FormatFloat(v, 'g', -1, 64)
		}
		return v
	case []byte:
		return base64.StdEncoding.EncodeToString(v)
	case string:
		if !utf8.ValidString(v) {
			return base64.StdEncoding.EncodeToString([]byte(v))
		}
		return v
	default:
		_, text := valueText(v)
		return string(text)
	}
}

// parseJSON makes a table or an array from what [jsonText] wrote. Integers
// come back as 64 bits wide, other numbers as doubles.
func parseJSON(text []byte, tag byte) (any, error) {
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	switch value := field(value, 0).(type) {
	case amqp.Table:
		if tag == tagTable {
			return value, nil
		}
	case []any:
		if tag == tagArray {
			return value, nil
		}
	}
	return nil, fmt.Errorf("not JSON of an AMQP %q", tag)
}

// maxNesting is how deep the client library reads tables and arrays.
const maxNesting = 32

// field returns a decoded JSON value as AMQP has it, nil where AMQP cannot
// carry it: a name of more than 255 bytes, or too deep.
func field(value any, depth int) any {
	if depth > maxNesting {
		return nil
	}
	switch v := value.(type) {
	case map[string]any:
		table := make(amqp.Table, len(v))
		for name, f := range v {
			if len(name) <= maxShortString {
				table[name] = field(f, depth+1)
			}
		}
		return table
	case []any:
		for i, element := range v {
			v[i] = field(element, depth+1)
		}
		return v
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		if f, err := parseFinite(v.String(), 64); err == nil {
			return f
		}
		return v.String()
	default:
		return v // nil, bool, string
	}
}

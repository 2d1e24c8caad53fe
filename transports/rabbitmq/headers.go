package rabbitmq

import (
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/semel-go/semel/handler"
)

// tableHeaders returns the headers in a table, sorted by name: a table has no
// order of its own. Each has the text form of its value and its AMQP type.
//
// A table cannot hold a name twice. An array of two or more plain values is
// therefore read as a repeated header, and a repeated header is sent as an
// array. Other arrays, and tables, are JSON text.
func tableHeaders(table amqp.Table) handler.Headers {
	if len(table) == 0 {
		return nil
	}
	headers := make(handler.Headers, 0, len(table))
	for _, name := range slices.Sorted(maps.Keys(table)) {
		values := []any{table[name]}
		if list, ok := table[name].([]any); ok && len(list) > 1 && !slices.ContainsFunc(list, nested) {
			values = list
		}
		for _, value := range values {
			tag, text := valueText(value)
			headers = append(headers, handler.Header{Name: name, Value: text, Tag: tag})
		}
	}
	return headers
}

// headersTable returns headers as a table.
//
// CC and BCC are left out: to RabbitMQ they are no data but an order to send
// the message to more queues, which a header from somewhere else must not give.
func headersTable(headers handler.Headers) (amqp.Table, error) {
	table := make(amqp.Table, len(headers))
	repeated := map[string][]any{}
	for _, h := range headers {
		if len(h.Name) > maxShortString {
			return nil, fmt.Errorf("header name of %d bytes: AMQP has room for %d", len(h.Name), maxShortString)
		}
		if h.Name == "CC" || h.Name == "BCC" {
			continue
		}
		value := textValue(h.Tag, h.Value)
		if first, again := table[h.Name]; again {
			if len(repeated[h.Name]) == 0 {
				repeated[h.Name] = []any{first}
			}
			repeated[h.Name] = append(repeated[h.Name], value)
		} else {
			table[h.Name] = value
		}
	}
	for name, values := range repeated {
		table[name] = values
	}
	return table, nil
}

// untypedValue is the value of a header that came from elsewhere: text if it
// is text, or other clients would get bytes where they want a string.
func untypedValue(value []byte) any {
	if utf8.Valid(value) {
		return string(value)
	}
	return value
}

func nested(value any) bool {
	switch value.(type) {
	case amqp.Table, []any:
		return true
	default:
		return false
	}
}

// encodedSize returns how many bytes a value takes in a table.
func encodedSize(value any) int {
	switch v := value.(type) {
	case string:
		return 5 + len(v)
	case []byte:
		return 5 + len(v)
	case amqp.Table:
		size := 5
		for name, field := range v {
			size += 1 + len(name) + encodedSize(field)
		}
		return size
	case []any:
		size := 5
		for _, element := range v {
			size += encodedSize(element)
		}
		return size
	default:
		return 9 // the widest number
	}
}

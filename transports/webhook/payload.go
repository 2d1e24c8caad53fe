package webhook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// text is a JSON string, or a number as it is written. Anything else is no text.
type text string

// UnmarshalJSON implements [json.Unmarshaler].
func (t *text) UnmarshalJSON(raw []byte) error {
	switch c := raw[0]; {
	case c == '"':
		return json.Unmarshal(raw, (*string)(t))
	case c == '-' || c >= '0' && c <= '9':
		*t = text(raw)
	}
	return nil
}

// decode fills into with what it finds in body, and reports whether that is JSON. A
// member of another kind than expected is left out.
func decode(body []byte, into any) bool {
	err := json.Unmarshal(withoutBOM(body), into)
	var other *json.UnmarshalTypeError
	return err == nil || errors.As(err, &other)
}

// withoutBOM is body as a JSON reader takes it. The message keeps the BOM.
func withoutBOM(body []byte) []byte { return bytes.TrimPrefix(body, []byte("\ufeff")) }

// paths are where a body says what it is about.
type paths struct{ id, kind, key, version, occurred pointer }

func parsePaths(c HMACConfig) (p paths, err error) {
	var errs []error
	for _, f := range []struct {
		name, text string
		into       *pointer
	}{
		{"ID", c.ID, &p.id},
		{"Type", c.Type, &p.kind},
		{"Key", c.Key, &p.key},
		{"Version", c.Version, &p.version},
		{"OccurredAt", c.OccurredAt, &p.occurred},
	} {
		if *f.into, err = parsePointer(f.text); err != nil {
			errs = append(errs, fmt.Errorf("%s is %q; it must be a JSON pointer, such as /data/id", f.name, f.text))
		}
	}
	return p, errors.Join(errs...)
}

func (p paths) read(body []byte) event {
	doc := document{open(withoutBOM(body))}
	found := event{id: doc.text(p.id), kind: doc.text(p.kind), key: doc.text(p.key)}
	found.version, _ = strconv.ParseInt(doc.text(p.version), 10, 64)
	at := doc.text(p.occurred)
	if t, err := unix(at, time.Second); err == nil {
		found.occurred = t
	} else if t, err := time.Parse(time.RFC3339, at); err == nil {
		found.occurred = t
	}
	return found
}

// pointer is a JSON pointer, unescaped. Nil points nowhere.
type pointer []string

func parsePointer(text string) (pointer, error) {
	if text == "" {
		return nil, nil
	}
	if text[0] != '/' {
		return nil, errors.New("no JSON pointer")
	}
	tokens := strings.Split(text[1:], "/")
	for i, token := range tokens {
		if strings.Contains(strings.NewReplacer("~0", "", "~1", "").Replace(token), "~") {
			return nil, errors.New("no JSON pointer")
		}
		tokens[i] = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
	}
	return tokens, nil
}

// document looks up pointers in a body whose outermost level is read once.
type document struct{ root any }

// text is the string or number that p points to, empty if there is none.
func (d document) text(p pointer) string {
	if p == nil {
		return ""
	}
	var raw json.RawMessage
	in := d.root
	for i, token := range p {
		if i > 0 {
			in = open(raw)
		}
		switch in := in.(type) {
		case map[string]json.RawMessage:
			raw = in[token]
		case []json.RawMessage:
			n, err := strconv.Atoi(token)
			if err != nil || n < 0 || n >= len(in) || strconv.Itoa(n) != token {
				return ""
			}
			raw = in[n]
		default:
			return ""
		}
	}
	var found text
	if len(raw) == 0 || json.Unmarshal(raw, &found) != nil {
		return ""
	}
	return string(found)
}

// open returns what is in a JSON object or array, by name or place; nil for anything
// else.
func open(raw []byte) any {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) == nil {
		return members
	}
	var elements []json.RawMessage
	if json.Unmarshal(raw, &elements) == nil {
		return elements
	}
	return nil
}

// withoutNumber returns body without the digits of one member of its outermost object.
// It reads far enough to know which member that is and no further, since it is called
// with every message; what is no JSON passes as it is, or nearly.
func withoutNumber(body []byte, name string) []byte {
	depth := 0
	for i := 0; i < len(body); i++ {
		switch body[i] {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case '"':
			end := endOfText(body, i)
			if depth == 1 && string(body[i+1:max(end-1, i+1)]) == name {
				if from, to := digits(body, end); to > from {
					return slices.Concat(body[:from], body[to:])
				}
			}
			i = end - 1
		}
	}
	return body
}

// endOfText is where the string ends that begins at body[from], behind its quote.
func endOfText(body []byte, from int) int {
	for i := from + 1; i < len(body); i++ {
		switch body[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(body)
}

// digits are those of the value behind a member's name; none if it is no name.
func digits(body []byte, from int) (start, end int) {
	space := func() {
		for from < len(body) && strings.IndexByte(" \t\r\n", body[from]) >= 0 {
			from++
		}
	}
	if space(); from == len(body) || body[from] != ':' {
		return from, from
	}
	from++
	space()
	for end = from; end < len(body) && body[end] >= '0' && body[end] <= '9'; end++ {
	}
	return from, end
}

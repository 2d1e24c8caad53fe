package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// object is a JSON object; its keys come out sorted.
type object map[string]any

// put sets a text, or name_base64 where the bytes are not UTF-8; nil is null.
func (o object) put(name string, value []byte) {
	switch {
	case value == nil:
		o[name] = nil
	case utf8.Valid(value):
		o[name] = string(value)
	default:
		o[name+"_base64"] = base64.StdEncoding.EncodeToString(value)
	}
}

// putText sets a text that means "not given" when it is empty.
func (o object) putText(name, value string) {
	if value != "" {
		o.put(name, []byte(value))
	}
}

// putTime sets a time that means "not given" when it is zero.
func (o object) putTime(name string, t time.Time) {
	if !t.IsZero() {
		o[name] = t.UTC().Format(time.RFC3339Nano)
	}
}

// writeJSON writes a value for machines, which a person may see in a terminal:
// what could control that is escaped.
func writeJSON(w io.Writer, value any) error {
	var plain bytes.Buffer
	encoder := json.NewEncoder(&plain)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(value); err != nil {
		return err
	}
	var safe bytes.Buffer
	for _, r := range plain.String() {
		switch {
		case r == '\n' || unicode.IsPrint(r):
			safe.WriteRune(r)
		case r >= utf8.RuneSelf && r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&safe, `\u%04x\u%04x`, high, low)
		default: // in a string: JSON has no such characters outside
			fmt.Fprintf(&safe, `\u%04x`, r)
		}
	}
	_, err := safe.WriteTo(w)
	return err
}

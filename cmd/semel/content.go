package main

import (
	"fmt"
	"io"

	"github.com/semel-go/semel/handler"
)

// content is what a message carries. A payload that a codec has encoded is not
// shown: nobody could read it.
type content struct {
	headers handler.Headers
	payload []byte
	encoded bool
	keyID   string
}

// print shows it to a person.
func (c content) print(w io.Writer) {
	if len(c.headers) > 0 {
		fmt.Fprint(w, "\nheaders\n")
		for _, h := range c.headers {
			value := "(no value)"
			if h.Value != nil {
				value = oneLine(string(h.Value), lineWidth)
			}
			fmt.Fprintf(w, "  %s: %s\n", oneLine(h.Name, lineWidth), value)
		}
	}
	switch {
	case c.encoded:
		fmt.Fprintf(w, "\npayload is encoded: %d bytes under key id %q\n", len(c.payload), c.keyID)
	case c.payload == nil:
		fmt.Fprint(w, "\nno payload (a tombstone)\n")
	case len(c.payload) == 0:
		fmt.Fprint(w, "\nempty payload\n")
	default:
		fmt.Fprintf(w, "\npayload, %d bytes\n%s", len(c.payload), body(c.payload))
	}
}

// put sets it for machines.
func (c content) put(o object) {
	if c.encoded {
		o["payload_encoded"] = object{"key_id": c.keyID, "bytes": len(c.payload)}
	} else {
		o.put("payload", c.payload)
	}
	headers := make([]object, 0, len(c.headers))
	for _, h := range c.headers {
		header := object{}
		header.put("name", []byte(h.Name))
		header.put("value", h.Value)
		if h.Tag != 0 {
			header["tag"] = string(rune(h.Tag))
		}
		headers = append(headers, header)
	}
	o["headers"] = headers
}

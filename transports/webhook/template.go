package webhook

import (
	"fmt"
	"net/http"
	"strings"
)

// part is a piece of what is signed: a placeholder or text.
type part struct {
	name string // "id", "timestamp", "url" or "body"; empty: it is text
	text string

	// not are the bytes that must not be in an id: those at which the text around it
	// begins and ends. With one of them in it, what is signed could be cut in
	// another place, and a part of the body be taken for the id.
	not string
}

// parseTemplate refuses what could be cut in two ways.
func parseTemplate(template string) ([]part, error) {
	refuse := func(why string) ([]part, error) {
		return nil, fmt.Errorf("%s is %q; %s", "Template", template, why)
	}
	var parts []part
	seen := map[string]bool{}
	for rest := template; rest != ""; {
		text, after, open := strings.Cut(rest, "{")
		if text != "" {
			parts = append(parts, part{text: text})
		}
		if !open {
			break
		}
		name, after, closed := strings.Cut(after, "}")
		switch {
		case !closed || name != "id" && name != "timestamp" && name != "url" && name != "body":
			return refuse("what stands in braces must be id, timestamp, url or body")
		case seen[name]:
			return refuse("{" + name + "} is in it twice")
		}
		seen[name] = true
		parts = append(parts, part{name: name})
		rest = after
	}
	if !seen["body"] {
		return refuse("without {body} anybody could change the body")
	}
	for i := range parts {
		if parts[i].name != "id" {
			continue
		}
		if i > 0 {
			if parts[i-1].text == "" {
				return refuse("text must stand before {id}: else it could be cut in another place")
			}
			parts[i].not += parts[i-1].text[len(parts[i-1].text)-1:]
		}
		if i < len(parts)-1 {
			if parts[i+1].text == "" {
				return refuse("text must stand behind {id}: else it could be cut in another place")
			}
			parts[i].not += parts[i+1].text[:1]
		}
	}
	return parts, nil
}

// fill returns what is signed, piece by piece.
func (s *generic) fill(h http.Header, body []byte) ([][]byte, error) {
	filled := make([][]byte, 0, len(s.parts))
	for _, p := range s.parts {
		switch p.name {
		case "body":
			filled = append(filled, body)
		case "url":
			filled = append(filled, []byte(s.cfg.URL))
		case "timestamp":
			filled = append(filled, []byte(h.Get(s.cfg.TimestampHeader)))
		case "id":
			id, err := oneLine(h, s.cfg.IDHeader)
			if err != nil {
				return nil, err
			}
			if strings.ContainsAny(id, p.not) {
				return nil, errMalformed
			}
			filled = append(filled, []byte(id))
		default:
			filled = append(filled, []byte(p.text))
		}
	}
	return filled, nil
}

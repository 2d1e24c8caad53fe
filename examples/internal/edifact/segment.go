package edifact

import (
	"fmt"
	"strings"
)

// Segment is one segment. Elements and their components are counted from 1.
type Segment struct {
	Tag string

	// Number is its position in the interchange, from 1 for UNB. UNA is no segment.
	Number int

	// Offset is the byte of the interchange where it begins.
	Offset int

	raw   []byte // without the terminator
	marks separators
	set   charset
}

// Component returns a component of an element: "EA" of QTY+47:1020:EA is
// Component(1, 3). It is empty if there is none. An element that is not composite has
// one component.
func (s Segment) Component(element, component int) string {
	var data []byte
	s.walk(func(e, c, _ int, b byte) bool {
		if e == element && c == component && b != 0 {
			data = append(data, b)
		}
		return e <= element
	})
	return s.set.text(data)
}

// Components returns all components of an element, without empty ones at its end.
func (s Segment) Components(element int) (all []string) {
	var data []byte
	at := 1
	s.walk(func(e, c, _ int, b byte) bool {
		if e != element {
			return e < element
		}
		if c != at {
			all, data, at = append(all, s.set.text(data)), nil, c
		}
		if b != 0 {
			data = append(data, b)
		}
		return true
	})
	all = append(all, s.set.text(data))
	for len(all) > 0 && all[len(all)-1] == "" {
		all = all[:len(all)-1]
	}
	return all
}

// Elements returns how many elements there are.
func (s Segment) Elements() (n int) {
	s.walk(func(e, _, _ int, _ byte) bool {
		n = e
		return true
	})
	return n
}

// Decimal returns a component that is a number, with a point as its decimal mark
// whatever it was. One that is none is an error.
func (s Segment) Decimal(element, component int) (string, error) {
	const most = 35 // digits of the longest number that directories know
	text := s.Component(element, component)
	number := strings.NewReplacer(",", ".", string(s.marks.decimal), ".").Replace(text)
	whole, fraction, pointed := strings.Cut(strings.TrimPrefix(number, "-"), ".")
	if len(text) > most || !isDigits(whole) || pointed && !isDigits(fraction) {
		return "", s.Errorf(element, "%q is no number", shorten(text))
	}
	return number, nil
}

// Errorf returns an error about an element, or about the segment if that is 0.
func (s Segment) Errorf(element int, format string, args ...any) *Error {
	offset := s.Offset
	if element > 0 {
		found := 0
		s.walk(func(e, _, at int, _ byte) bool {
			if e > found {
				found, offset = e, s.Offset+at
			}
			return e < element
		})
	}
	return &Error{Segment: s.Number, Tag: s.Tag, Element: element, Offset: offset, Text: fmt.Sprintf(format, args...)}
}

// walk tells visit each byte of data: in which component of which element it is, where
// 0 is the tag, and at which position. Where an element or component begins it is told
// a byte of 0, which is never data. It ends when visit returns false.
func (s Segment) walk(visit func(element, component, at int, b byte) bool) {
	element, component, released := 0, 1, false
	if !visit(element, component, 0, 0) {
		return
	}
	for i, b := range s.raw {
		data := byte(0)
		at := i
		switch {
		case isLineBreak(b):
			continue
		case released:
			data, released = b, false
		case b == s.marks.release && b != 0:
			released = true
			continue
		case b == s.marks.element:
			element, component, at = element+1, 1, i+1
		case b == s.marks.component:
			component, at = component+1, i+1
		default:
			data = b
		}
		if !visit(element, component, at, data) {
			return
		}
	}
}

func isDigits(text string) bool {
	return text != "" && strings.Trim(text, "0123456789") == ""
}

// shorten cuts a value for an error.
func shorten(text string) string {
	const most = 20
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "..."
	}
	return text
}

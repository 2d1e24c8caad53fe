package edifact

import (
	"bytes"
	"unicode/utf8"
)

// charset is what the bytes of an interchange mean.
type charset int

const (
	ascii charset = iota
	latin1
	utf8Text
)

// charsets are the syntax identifiers that are read. UNOA knows no small letters;
// partners write them all the same, and nobody minds. IATA is that of airlines.
func charsetOf(syntax string) (set charset, known bool) {
	switch syntax {
	case "UNOA", "UNOB", "IATA":
		return ascii, true
	case "UNOC":
		return latin1, true
	case "UNOW":
		return utf8Text, true
	}
	return ascii, false
}

// wrong returns the position of the first byte that cannot be in a segment, or -1.
func (c charset) wrong(raw []byte) int {
	for i, b := range raw {
		switch {
		case isLineBreak(b):
		case b < ' ', b == 0x7f, c == ascii && b > 0x7f, c == latin1 && b > 0x7f && b < 0xa0:
			return i
		}
	}
	if c == utf8Text && !utf8.Valid(raw) {
		for i := 0; i < len(raw); {
			r, size := utf8.DecodeRune(raw[i:])
			if r == utf8.RuneError && size == 1 {
				return i
			}
			i += size
		}
	}
	return -1
}

// text decodes data.
func (c charset) text(data []byte) string {
	if c != latin1 || bytes.IndexFunc(data, func(r rune) bool { return r > 0x7f }) < 0 {
		return string(data)
	}
	runes := make([]rune, len(data))
	for i, b := range data {
		runes[i] = rune(b)
	}
	return string(runes)
}

func isLineBreak(b byte) bool { return b == '\r' || b == '\n' }

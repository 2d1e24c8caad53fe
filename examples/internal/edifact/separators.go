package edifact

import (
	"bytes"
	"fmt"
	"strings"
)

// separators are the characters that are no data unless they are released. None of
// them is a letter, a digit or a line break.
type separators struct {
	component, element, terminator byte
	release                        byte // 0: there is none
	repetition                     byte // 0: there is none
	decimal                        byte
}

// defaults are those of an interchange that does not say.
func defaults() separators {
	return separators{component: ':', element: '+', terminator: '\'', release: '?', decimal: '.'}
}

// readSeparators reads UNA, the service string advice, if the data begins with it, and
// returns how long it is:
//
//	UNA:+.? '
//
// Of its fifth character only syntax version 4 makes use.
func readSeparators(data []byte) (s separators, repetition byte, size int, err error) {
	const advice = "UNA"
	if !bytes.HasPrefix(data, []byte(advice)) {
		return defaults(), '*', 0, nil
	}
	if size = len(advice) + 6; len(data) < size {
		return s, 0, 0, fmt.Errorf("UNA must be followed by six characters")
	}
	una := data[len(advice):size]
	s = separators{component: una[0], element: una[1], decimal: una[2], release: una[3], terminator: una[5]}
	if s.release == ' ' {
		s.release = 0
	}
	seen := make(map[byte]bool)
	for _, c := range []byte{s.component, s.element, s.release, s.terminator} {
		switch {
		case c == 0 && s.release == 0: // there is none
		case c <= ' ' || c >= 0x7f || isAlphanumeric(c):
			return s, 0, 0, fmt.Errorf("UNA makes %q a separator, it must be a punctuation mark", c)
		case seen[c]:
			return s, 0, 0, fmt.Errorf("UNA gives %q two meanings", c)
		}
		seen[c] = true
	}
	if una[4] != ' ' {
		repetition = una[4]
	}
	return s, repetition, size, nil
}

func isAlphanumeric(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
}

// Release makes a text data, for an interchange without UNA: with a release character
// before what would be a separator.
func Release(text string) string {
	return strings.NewReplacer("?", "??", "+", "?+", ":", "?:", "'", "?'").Replace(text)
}

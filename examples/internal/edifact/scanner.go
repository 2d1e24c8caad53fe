package edifact

import "strings"

// maxSegments bounds what an interchange costs us.
const maxSegments = 500_000

// scanner cuts an interchange into segments.
type scanner struct {
	data       []byte
	at         int // where the next segment begins, or line breaks before it
	number     int // of the last segment
	marks      separators
	repetition byte // is between repeated elements, where the syntax version has them
	set        charset
}

func newScanner(data []byte) (*scanner, error) {
	s := &scanner{data: data, set: latin1} // until UNB tells
	s.skip()
	marks, repetition, size, err := readSeparators(data[s.at:])
	if err != nil {
		return nil, &Error{Tag: "UNA", Offset: s.at, Text: err.Error()}
	}
	s.marks, s.repetition = marks, repetition
	s.at += size
	return s, nil
}

// declare tells what UNB says of the rest: its character set, and the syntax version.
func (s *scanner) declare(set charset, version string) {
	s.set = set
	if version >= "4" {
		s.marks.repetition = s.repetition
	}
}

// skip passes over what may stand between segments.
func (s *scanner) skip() {
	for s.at < len(s.data) && (isLineBreak(s.data[s.at]) || s.data[s.at] == ' ' || s.data[s.at] == '\t') {
		s.at++
	}
}

// ended reports that there is nothing more.
func (s *scanner) ended() bool {
	s.skip()
	return s.at >= len(s.data)
}

// next returns the next segment.
func (s *scanner) next() (Segment, error) {
	if s.ended() {
		return Segment{}, s.fail(s.at, "the interchange breaks off: there is no UNZ")
	}
	s.number++
	if s.number > maxSegments {
		return Segment{}, s.fail(s.at, "there are more segments than are read")
	}
	begin, released := s.at, false
	for i := begin; i < len(s.data); i++ {
		switch b := s.data[i]; {
		case isLineBreak(b):
		case released:
			released = false
		case b == s.marks.release && b != 0:
			released = true
		case b == s.marks.repetition && b != 0:
			return Segment{}, s.fail(i, "repeated elements are not read")
		case b == s.marks.terminator:
			s.at = i + 1
			return s.segment(begin, i)
		}
	}
	return Segment{}, s.fail(begin, "the segment has no end: the interchange breaks off, or has other separators than UNA says")
}

func (s *scanner) segment(begin, end int) (Segment, error) {
	seg := Segment{Number: s.number, Offset: begin, raw: s.data[begin:end], marks: s.marks, set: s.set}
	tag := seg.Component(0, 1)
	if len(tag) != 3 || strings.ContainsFunc(tag, func(r rune) bool { return r > 0x7f || !isAlphanumeric(byte(r)) }) {
		return seg, s.fail(begin, "a segment begins with a tag of three letters, not with "+quote(tag))
	}
	seg.Tag = tag
	return seg, nil
}

// check returns an error if the segment has a character that cannot be in it.
func (s *scanner) check(seg Segment) *Error {
	at := s.set.wrong(seg.raw)
	if at < 0 {
		return nil
	}
	element := 0
	seg.walk(func(e, _, here int, _ byte) bool {
		if here <= at {
			element = e
		}
		return here <= at
	})
	err := seg.Errorf(0, "byte 0x%02x is no character of the interchange's syntax", seg.raw[at])
	err.Element, err.Offset = element, seg.Offset+at
	return err
}

// fail returns an error in a segment that is none.
func (s *scanner) fail(at int, text string) *Error {
	return &Error{Segment: s.number, Offset: at, Text: text}
}

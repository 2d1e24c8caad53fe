package edifact

import (
	"bytes"
	"cmp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxRef bounds partners' ids and references, as the standard does.
const maxRef = 35

// envelope reads what is around the messages: UNB, groups, UNH and their ends.
type envelope struct {
	*scanner
	lenient bool
	in      *Interchange
	refs    map[string]bool // of the messages so far
}

func (e *envelope) read() error {
	if err := e.header(); err != nil {
		return err
	}
	groups, inGroup := 0, 0 // inGroup: messages of the group that is open
	var group *Segment
	for {
		seg, err := e.segmentInside()
		if err != nil {
			return err
		}
		switch seg.Tag {
		case "UNG":
			if group != nil || groups == 0 && len(e.in.Messages) > 0 {
				return seg.Errorf(0, "a group begins where none can")
			}
			groups, inGroup, group = groups+1, 0, &seg
		case "UNE":
			if group == nil {
				return seg.Errorf(0, "no group has begun that could end")
			}
			if err := e.closes(seg, "messages", inGroup, group.Component(5, 1)); err != nil {
				return err
			}
			group = nil
		case "UNH":
			if group == nil && groups > 0 {
				return seg.Errorf(0, "a message outside the groups")
			}
			if err := e.message(seg); err != nil {
				return err
			}
			inGroup++
		case "UNZ":
			if group != nil {
				return seg.Errorf(0, "the interchange ends and its last group has not")
			}
			return e.end(seg, groups)
		default:
			return seg.Errorf(0, "the segment is outside of any message")
		}
	}
}

// header reads UNB.
func (e *envelope) header() error {
	if e.ended() {
		return e.fail(e.at, "there is no interchange: it is empty")
	}
	seg, err := e.next()
	if err != nil {
		return err
	}
	if seg.Tag != "UNB" {
		return seg.Errorf(0, "an interchange begins with UNB, or UNA and UNB")
	}
	in := e.in
	in.Header = seg
	in.Syntax, in.Version = seg.Component(1, 1), seg.Component(1, 2)
	set, known := charsetOf(in.Syntax)
	if !known {
		return seg.Errorf(1, "the syntax is %q, what is read is UNOA, UNOB, UNOC, UNOW and IATA", shorten(in.Syntax))
	}
	if len(in.Version) != 1 || in.Version < "1" || in.Version > "4" {
		return seg.Errorf(1, "the syntax version is %q, what is read is 1 to 4", shorten(in.Version))
	}
	e.declare(set, in.Version)
	if err := e.characters(seg); err != nil {
		return err
	}
	seg.set = e.set
	in.Header = seg
	in.Sender, in.SenderQualifier = seg.Component(2, 1), seg.Component(2, 2)
	in.Recipient, in.RecipientQualifier = seg.Component(3, 1), seg.Component(3, 2)
	in.ControlRef = seg.Component(5, 1)
	return cmp.Or(
		mustBe(seg, 2, "sender", in.Sender),
		mustBe(seg, 3, "recipient", in.Recipient),
		mustBe(seg, 5, "control reference", in.ControlRef),
	)
}

// message reads a message, of which unh is the header.
func (e *envelope) message(unh Segment) error {
	m := Message{
		Ref: unh.Component(1, 1), Header: unh,
		Type: unh.Component(2, 1), Version: unh.Component(2, 2), Release: unh.Component(2, 3),
	}
	if err := cmp.Or(mustBe(unh, 1, "message reference", m.Ref), mustBe(unh, 2, "message type", m.Type)); err != nil {
		return err
	}
	if e.refs[m.Ref] {
		return unh.Errorf(1, "another message of the interchange has the reference %q", shorten(m.Ref))
	}
	e.refs[m.Ref] = true
	for {
		seg, err := e.segmentInside()
		if err != nil {
			return err
		}
		switch seg.Tag {
		case "UNT":
			m.Raw, m.Header.set = e.data[unh.Offset:e.at], e.set // in which all of it can be read
			e.in.Messages = append(e.in.Messages, m)
			return e.closes(seg, "segments", len(m.Segments)+2, m.Ref)
		case "UNA", "UNB", "UNG", "UNH", "UNE", "UNZ":
			return seg.Errorf(0, "message %q has not ended", shorten(m.Ref))
		}
		m.Segments = append(m.Segments, seg)
	}
}

// end reads what UNZ says, and that it is the last.
func (e *envelope) end(unz Segment, groups int) error {
	if len(e.in.Messages) == 0 {
		return unz.Errorf(0, "there is no message in the interchange")
	}
	what, n := "messages", len(e.in.Messages)
	if groups > 0 {
		what, n = "groups", groups
	}
	if err := e.closes(unz, what, n, e.in.ControlRef); err != nil {
		return err
	}
	switch {
	case e.ended():
		return nil
	case bytes.HasPrefix(e.data[e.at:], []byte("UNA")), bytes.HasPrefix(e.data[e.at:], []byte("UNB")):
		return &Error{Offset: e.at, Text: "a second interchange begins behind the first: send one at a time"}
	default:
		return &Error{Offset: e.at, Text: "there is something behind the end of the interchange"}
	}
}

// closes compares what the end of something says with what there was: how many, and
// under which reference.
func (e *envelope) closes(seg Segment, what string, n int, ref string) error {
	if said := seg.Component(2, 1); said != ref {
		return seg.Errorf(2, "its reference is %q, that of its beginning is %q", shorten(said), shorten(ref))
	}
	said, err := strconv.Atoi(seg.Component(1, 1))
	if err != nil || said < 0 {
		return seg.Errorf(1, "the number of %s is %q, which is none", what, shorten(seg.Component(1, 1)))
	}
	if said == n {
		return nil
	}
	wrong := seg.Errorf(1, "it says %d %s, there are %d", said, what, n)
	if e.lenient && seg.Tag == "UNT" {
		e.in.Warnings = append(e.in.Warnings, wrong)
		return nil
	}
	return wrong
}

// segmentInside returns the next segment, of characters that are allowed.
func (e *envelope) segmentInside() (Segment, error) {
	seg, err := e.next()
	if err != nil {
		return seg, err
	}
	if err := e.characters(seg); err != nil {
		return seg, err
	}
	seg.set = e.set // which may be another one now
	return seg, nil
}

// characters checks those of a segment. A lenient reader takes the rest of an
// interchange for something else once it is not ASCII: nothing is UTF-8 by chance.
func (e *envelope) characters(seg Segment) error {
	wrong := e.check(seg)
	if wrong == nil {
		return nil
	}
	if !e.lenient || e.set != ascii {
		return wrong
	}
	if e.set = latin1; utf8.Valid(e.data) {
		e.set = utf8Text
	}
	if err := e.check(seg); err != nil {
		return err
	}
	e.in.Warnings = append(e.in.Warnings, wrong)
	return nil
}

// mustBe checks an id or a reference.
func mustBe(seg Segment, element int, what, value string) error {
	switch {
	case strings.TrimSpace(value) == "":
		return seg.Errorf(element, "the %s is missing", what)
	case len(value) > maxRef:
		return seg.Errorf(element, "the %s has %d bytes, it must have %d at most", what, len(value), maxRef)
	}
	return nil
}

func quote(text string) string { return strconv.Quote(shorten(text)) }

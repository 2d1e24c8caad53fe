package edifact

import (
	"fmt"
	"strings"
)

// Error is something wrong at a place of an interchange.
type Error struct {
	// Segment is its number in the interchange, from 1 for UNB, and Tag its tag. 0:
	// it is about none.
	Segment int
	Tag     string

	// Element is its position in the segment, from 1. 0: it is about the whole segment.
	Element int

	// Offset is the byte of the interchange, from 0.
	Offset int

	// Text says what is wrong.
	Text string
}

func (e *Error) Error() string {
	var where strings.Builder
	if e.Segment > 0 {
		fmt.Fprintf(&where, "segment %d", e.Segment)
		if e.Tag != "" {
			fmt.Fprintf(&where, " (%s)", e.Tag)
		}
		if e.Element > 0 {
			fmt.Fprintf(&where, ", element %d", e.Element)
		}
		where.WriteString(", ")
	}
	fmt.Fprintf(&where, "byte %d: %s", e.Offset, e.Text)
	return where.String()
}
